"""`python -m kerncap` is the `kerncap` command."""

from kerncap.cli import main

if __name__ == "__main__":
    main()
