"""Export of the results of a notebook or a run: tables as text, figures as files."""
