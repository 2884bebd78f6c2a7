"""Multi-hop question answering on HotpotQA (CDLM section 3.4): notebook 06."""
