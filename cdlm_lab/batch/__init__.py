"""Grids of notebook runs, here or on a cluster: read, checked, planned, and handed to Snakemake."""
