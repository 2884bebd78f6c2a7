"""Grids of notebook runs, on this machine or a cluster: read, checked, planned, and executed by Snakemake."""
