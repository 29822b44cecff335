"""What the provider knows: exact and learned beliefs, and what one more release would tell it.

Functions take arrays of numpy or of JAX and compute in the namespace that the arrays name (`__array_namespace__`): one
source for training and for the gateway. Filters are JAX.
"""
