"""A file or a folder that is there whole or not at all, whatever stops the process that writes it."""

from __future__ import annotations

import secrets
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from farthing.errors import DataError, InvalidOption

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def beside(place: Path) -> Iterator[Path]:
    """Give an empty folder beside the file or folder that is to be made; what is left of it at the end is removed.

    Raises:
        DataError: it cannot be made there.
    """
    near = place.parent / f".{place.name}.{secrets.token_hex(8)}"
    with writing(place):
        near.mkdir()
    try:
        yield near
    finally:
        shutil.rmtree(near, ignore_errors=True)


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Say what the system says against writing a file or a folder.

    Raises:
        DataError: it cannot be written: the disk is full, or the folder of somebody else.
    """
    problem = ""
    try:
        yield
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise DataError(
            "it cannot be written there",
            rule="a new name in a folder in which you may write, on a disk with room",
            got=f"{place}: {problem}",
            next_step="name another place; what was answered is free when asked again",
        )


def renamed(near: Path, folder: Path) -> None:
    """Give a folder that is written its name: what has the name has all its files.

    Raises:
        InvalidOption: the folder came to be in the meantime.
        DataError: it cannot be written.
    """
    with writing(folder):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
        if folder.exists():
            raise taken(folder)
        near.rename(folder)


def taken(folder: Path) -> InvalidOption:
    """Return the refusal of a folder that has something else in it."""
    return InvalidOption(
        "something else is there already",
        rule="a new folder, or an empty one: files are not written over",
        got=folder,
        next_step="name another folder, or move this one away",
    )
