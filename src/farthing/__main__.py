"""`python -m farthing`: the command line."""

from __future__ import annotations

from farthing.cli import main

if __name__ == "__main__":
    main()
