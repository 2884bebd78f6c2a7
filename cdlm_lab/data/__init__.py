"""Records, readers and the embedded corpus. Standard library and defusedxml only: no torch, no numpy."""
