"""One module per notebook: plain functions that wire the library and return a Report."""
