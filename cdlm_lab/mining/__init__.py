"""From a pile of articles to clusters of reports of one event."""
