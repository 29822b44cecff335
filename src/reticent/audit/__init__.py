"""What leaks, and what it buys."""
