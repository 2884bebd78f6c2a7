"""What an experiment shows: tables and figures of its report, its predictions in place, one's own texts."""
