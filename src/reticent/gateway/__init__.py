"""Live: readings in, releases out. Numpy only: no JAX, no solver, nothing that learns.

A subject has a standing; the runtime decides from the standing alone; the ledger remembers before anything leaves.
"""
