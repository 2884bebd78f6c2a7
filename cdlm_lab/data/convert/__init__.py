"""Readers of published formats, each into the records of `cdlm_lab.data.records`."""
