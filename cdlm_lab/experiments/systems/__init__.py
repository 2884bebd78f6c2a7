"""The systems that experiments compare: from a name to a model, to the input it reads and its predictions."""
