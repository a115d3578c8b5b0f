"""`python -m kbat`: the command line, as `kbat`."""

from kbat.cli import main

if __name__ == "__main__":
    main()
