"""One folder a task: examples, model, systems, metrics, experiment and view. No task imports another."""

from cdlm_lab.errors import interrupts_in_one_line, loading_line

loading_line()
interrupts_in_one_line("Interrupted. What was finished is kept: run all cells again to go on.")
