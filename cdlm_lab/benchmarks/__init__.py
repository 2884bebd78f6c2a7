"""Measurements against the peer in the same run: `python -m cdlm_lab.benchmarks.NAME`."""
