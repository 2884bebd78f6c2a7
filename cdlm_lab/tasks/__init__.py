"""One folder a task: examples, model, systems, metrics, experiment and view. No task imports another."""
