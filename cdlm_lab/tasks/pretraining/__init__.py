"""Cross-document language modelling and its perplexity (CDLM): notebooks 00, 01 and 02."""
