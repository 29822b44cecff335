"""Saved results -> figures, tables, one self-contained page. Never recomputes anything."""
