"""Benchmarks of our implementation against a baseline, in one run: `python -m cdlm_lab.benchmarks.NAME`."""
