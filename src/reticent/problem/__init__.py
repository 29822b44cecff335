"""What is hidden, what each sensor says, what is wanted. Plain numpy: nothing here imports JAX."""
