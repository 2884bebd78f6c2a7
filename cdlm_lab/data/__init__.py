"""Records, readers and the embedded corpus: no torch, no transformers."""
