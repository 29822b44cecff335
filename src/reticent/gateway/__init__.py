"""The live gateway: readings in, releases out. Numpy only: no JAX, no training.

The `Standing` of a subject is what the provider knows of it; the runtime decides from that alone; every release is in
the ledger before it leaves.
"""
