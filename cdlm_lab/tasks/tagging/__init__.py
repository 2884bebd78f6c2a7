"""Document-attentive tagging (Doc-ARC): notebook 07."""
