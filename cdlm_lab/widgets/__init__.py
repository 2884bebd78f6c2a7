"""Figures and interactive widgets for JupyterLab. They are built from arrays and strings and hold neither
files nor models."""
