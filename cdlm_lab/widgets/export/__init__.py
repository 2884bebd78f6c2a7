"""What one takes along from a notebook or a run: tables as text, figures as files."""
