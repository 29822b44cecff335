"""Solution: a task and how it is solved, ready to be evaluated, certified, audited and saved."""
