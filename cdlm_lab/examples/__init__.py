"""From records to ids and positions; the tokenizer is an argument."""
