"""What every experiment shares: identity of a run, systems and seeds, items, tests, and the report."""
