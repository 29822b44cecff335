"""Recordings of people: what their sensors said, with labels. Knows no model."""
