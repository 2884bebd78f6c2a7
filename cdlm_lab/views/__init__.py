"""What notebooks show of any task: tables, charts, marked texts, boxes for texts of one's own."""
