"""The one error that a user can mend: the command line prints its sentence and exits with code 2."""


class InputError(ValueError):
    """Something given from outside does not fit; the message is a sentence that says what and where."""
