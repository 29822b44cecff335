"""The error for invalid user input: the command line prints its sentence and exits with code 2."""


class InputError(ValueError):
    """Raised for invalid user input. The message says what is wrong, what was found and what to do next.

    Args:
        message: The sentence.

    Example:
        >>> try:
        ...     rt.Confidence(1.5)
        ... except rt.InputError as error:
        ...     print(str(error)[:58])
        The confidence bound is a probability, at most 1, but is 1
    """
