"""Local + global attention of Longformer: one function, several backends, one oracle. Torch only."""
