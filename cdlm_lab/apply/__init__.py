"""Trained models as objects that read texts: what `cdlm_lab.load` and the command `cdlm-lab apply` return."""
