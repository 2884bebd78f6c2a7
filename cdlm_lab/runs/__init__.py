"""What every experiment shares: the identity of a run, its systems and seeds, items, tests, and the report."""
