"""Matching documents and aligning their sentences (CDA): notebooks 04 and 05."""
