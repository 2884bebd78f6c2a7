"""Scores and tests of significance: numpy and scipy only, arrays in, numbers out."""
