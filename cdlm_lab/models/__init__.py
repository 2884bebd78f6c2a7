"""Hugging Face models with our attention inside, and the heads of the four systems."""
