"""storyworld, a generated corpus: reports of invented events, with the gold of every task."""
