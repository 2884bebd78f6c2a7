"""Models of real English that `cdlm_lab.load` opens by name, each in a folder with card and licence."""
