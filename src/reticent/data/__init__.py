"""Recordings of people: what their sensors said, and what was true meanwhile. Knows no model."""
