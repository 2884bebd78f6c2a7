"""Records, corpus readers and the embedded corpus; nothing here imports torch or transformers."""
