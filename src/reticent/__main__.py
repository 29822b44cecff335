"""`python -m reticent` is the `reticent` command."""

from reticent.cli import main

if __name__ == "__main__":
    main()
