"""The systems that experiments compare: from a name to a model, to what it reads and to what it says."""
