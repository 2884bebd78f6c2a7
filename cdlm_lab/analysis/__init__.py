"""What trained models do: which words their attention relates, measured and made visible."""
