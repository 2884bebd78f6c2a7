"""How views stand in a notebook: figures that are seen without scripts, and cells that are run again."""
