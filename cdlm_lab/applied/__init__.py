"""Trained models as objects that take texts: what `cdlm_lab.load` and the command `cdlm-lab apply` give."""
