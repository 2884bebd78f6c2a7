"""What a person sees in JupyterLab: pictures and widgets from arrays and strings; no files, no models
inside."""
