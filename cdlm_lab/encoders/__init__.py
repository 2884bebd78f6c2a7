"""Encoders with attention across documents: loading, conversion, heads for words, frozen encodings."""
