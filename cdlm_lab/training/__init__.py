"""A thin layer on transformers.Trainer: settings, schedule, exact resume. Knows no task."""
