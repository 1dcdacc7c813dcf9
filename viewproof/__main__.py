"""`python -m viewproof` is `vsr`."""

from viewproof.refinement.cli import main

if __name__ == "__main__":
    main()
