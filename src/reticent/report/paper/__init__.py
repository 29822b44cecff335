"""The paper's claims, held against saved results of its studies."""
