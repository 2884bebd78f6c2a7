"""cdlm_lab: a workbench for reading several texts together. See README.md."""

__version__ = "0.1.0"
