"""The command line: `farthing demo`, `init`, `ask`, `plan`, `bounds`, the books, `groups`, `version`.

Everything heavy is imported inside the command that needs it, so that `farthing --help` answers at once.
"""

from __future__ import annotations


def main() -> None:
    """Run the command line.

    The process exits 0 answered, 2 usage, 3 refused by budget, 4 data, ledger or engine, 130 stopped by Ctrl-C.
    """
    import sys

    try:
        from farthing.cli.repeats import keeping

        with keeping(sys.argv[1:], _run) as printed:
            if not printed:
                _run(sys.argv[1:])
    except KeyboardInterrupt:  # while libraries are loaded: commands handle their own
        sys.exit(130)


def _run(args: list[str]) -> None:
    """Run a command, and exit."""
    from farthing.cli.app import app

    app(args)


__all__ = ["main"]
