"""What may be sent: safe kernels, the program that finds the cheapest one, and the check that trusts neither."""
