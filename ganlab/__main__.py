"""`python -m ganlab` is `ganlab`."""

from ganlab.cli import main

if __name__ == "__main__":
    main()
