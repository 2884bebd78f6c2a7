"""Scores and tests of significance: numpy, scipy, scikit-learn and seqeval only, arrays in, numbers out."""
