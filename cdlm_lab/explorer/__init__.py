"""Which tokens models attend to across documents (CDLM section 3.5: Figure 3 and Table 6): notebook 11."""
