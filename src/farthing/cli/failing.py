"""Errors of the command line: one line on stderr, one exit code, never a traceback for what can be explained."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from farthing.advice import Face, told
from farthing.errors import FarthingError, TargetMissed

if TYPE_CHECKING:
    from collections.abc import Iterator


def in_flags(text: str) -> str:
    """Return advice in the words of the command line."""
    return told(text, Face.TERMINAL)


@contextmanager
def explained(*, as_json: bool = False) -> Iterator[None]:
    """Turn an error into its line and its exit code; with --json also into an object on stdout."""
    try:
        yield
    except FarthingError as error:
        from farthing.query import outward

        if as_json:
            typer.echo(outward.dumped(_facts(error)))
        line = outward.line(" ".join(str(_typed(error)).split()))
        sys.stdout.flush()
        typer.echo(f"farthing: {line}", err=True)
        raise typer.Exit(error.exit_code) from None


def _typed(error: FarthingError) -> FarthingError:
    """Return what is said of an error on the command line; what was got stays as it was typed."""
    return FarthingError(
        in_flags(error.what), rule=in_flags(error.rule), got=error.got, next_step=in_flags(error.next_step)
    )


def _facts(error: FarthingError) -> dict[str, Any]:
    """Return an error as plain values; an answer that was paid for comes with it."""
    facts: dict[str, Any] = {}
    if isinstance(error, TargetMissed):
        facts = error.answer.to_dict()
    said = _typed(error)
    facts["error"] = {
        "kind": type(error).__name__,
        "what": said.what,
        "rule": said.rule,
        "got": said.got,
        "next_step": said.next_step,
        "exit_code": error.exit_code,
    }
    return facts
