"""Joint reading of a sentence and its candidates (MSPP): notebooks 08, 09 and 10."""
