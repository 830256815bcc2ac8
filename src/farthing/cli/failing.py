"""Errors of the command line: one line on stderr, one exit code, never a traceback for what can be explained."""

from __future__ import annotations

import json
import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from farthing.errors import FarthingError, TargetMissed

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPTION = re.compile(r'\b(relative|absolute|confidence|max_epsilon|on_miss|cap)="?([\w.%]*)"?')


def in_flags(text: str) -> str:
    """Return advice that was written for Python in the words of the command line.

    >>> in_flags('ask for absolute=27, or cap="all"')
    'ask for --absolute 27, or --cap all'
    """
    return _OPTION.sub(lambda found: f"--{found[1].replace('_', '-')}{' ' if found[2] else ''}{found[2]}", text)


@contextmanager
def explained(*, as_json: bool = False) -> Iterator[None]:
    """Turn an error into its line and its exit code; with --json also into an object on stdout."""
    try:
        yield
    except FarthingError as error:
        if as_json:
            typer.echo(json.dumps(_facts(error)))
        line = in_flags(" ".join(str(error).split()))
        sys.stdout.flush()
        typer.echo(f"farthing: {line}", err=True)
        raise typer.Exit(error.exit_code) from None


def _facts(error: FarthingError) -> dict[str, Any]:
    """Return an error as plain values; an answer that was paid for comes with it."""
    facts: dict[str, Any] = {}
    if isinstance(error, TargetMissed):
        from farthing.cli.show import plain

        facts = plain(error.answer)
    facts["error"] = {
        "kind": type(error).__name__,
        "what": error.what,
        "rule": error.rule,
        "got": error.got,
        "next_step": error.next_step,
        "exit_code": error.exit_code,
    }
    return facts
