"""Recorded results: the tables of the READMEs, the results book of notebook 12, the papers' claims."""
