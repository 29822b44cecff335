"""Recordings to a finite model: readings, codes, tempering, prior."""
