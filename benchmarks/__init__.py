"""Speed and quality, measured; see README.md in this folder for the latest figures."""
