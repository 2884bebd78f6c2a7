"""Cross-document coreference resolution (CDLM sections 3.2, A.2, C.1; Tables 2 and 3): notebook 03."""
