"""One module per notebook: plain functions that combine parts of the library and return a Report."""

from cdlm_lab.errors import interrupts_in_one_line, loading_line

loading_line()
interrupts_in_one_line("Interrupted. What was finished is kept: run all cells again to go on.")
