"""A file or a folder that is there whole or not at all, whatever stops the process that writes it."""

from __future__ import annotations

import glob
import os
import secrets
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from farthing.errors import DataError, InvalidOption
from farthing.urls import paths_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@contextmanager
def beside(place: Path) -> Iterator[Path]:
    """Give an empty folder beside the file or folder that is to be made, or within the folder that is there.

    What is left of it at the end is removed. A folder that is there may be another disk than the one that it is in, and
    may be written where that one may not.

    Raises:
        InvalidOption: a link that leads nowhere is there.
        DataError: it cannot be made there.
    """
    if place.is_symlink() and not place.exists():
        raise taken(place)
    near = (place if place.is_dir() else place.parent) / f".{place.name}.{secrets.token_hex(8)}"
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


def require_free(place: Path) -> None:
    """Refuse what cannot be written, before anything is paid; nothing is left there.

    Raises:
        InvalidOption: something else is there.
        DataError: it cannot be written.
    """
    with writing(place):
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise taken(place)
    missing = [folder for folder in place.parents if not folder.exists()]
    try:
        with writing(place):
            place.parent.mkdir(parents=True, exist_ok=True)
        with beside(place):
            return
    finally:
        for folder in missing:
            with suppress(OSError):
                folder.rmdir()


def named(near: Path, folder: Path) -> None:
    """Give what is written its name: a new folder has all of it; one that is there stays, and gets one file at a time.

    Raises:
        InvalidOption: something came to be there in the meantime.
        DataError: it cannot be written; then nothing is.
    """
    with writing(folder):
        if folder.is_dir():
            _moved_into(near, folder)
        elif folder.exists():
            raise taken(folder)
        else:
            near.rename(folder)


def _moved_into(near: Path, folder: Path) -> None:
    """Move everything into a folder that is there, or nothing."""
    written, begun = sorted(near.iterdir()), []
    for each in written:
        if (folder / each.name).exists():
            raise taken(folder / each.name)
    try:
        for each in written:
            begun.append(each)
            each.rename(folder / each.name)
    except BaseException:
        for each in begun:
            if not each.exists():
                (folder / each.name).rename(each)
        raise


def taken(folder: Path) -> InvalidOption:
    """Return the refusal of a folder that has something else in it."""
    return InvalidOption(
        "something else is there already",
        rule="a new folder, or an empty one: files are not written over",
        got=folder,
        next_step="name another folder, or move this one away",
    )


def shares_files(one: str, other: str) -> bool:
    """Return whether two tables, given as paths or patterns, have a file in common; all in a table's folder is its own.

    The same file may have several names: links, paths of other letters, and the address of a Spark that reads it. An
    address that does not tell its files shares none here: that is for its server to say, or for `paths_at`.
    """
    mine, theirs = _numbers(paths_at(one) or ()), _numbers(paths_at(other) or ())
    return bool(mine[0] & theirs[1] or theirs[0] & mine[1])


def _numbers(tables: Iterable[str]) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Return the numbers that the system has for the files of a table, and these with those of the folders above."""
    named = [path for table in tables for path in (table, *(_matching(table) if glob.has_magic(table) else []))]
    files = {Path(os.path.realpath(path)) for path in named if "\0" not in path}  # of no other name it fails
    folders = {folder for file in files for folder in file.parents}
    mine = {number for file in files if (number := _number(file)) is not None}
    return mine, mine | {number for folder in folders if (number := _number(folder)) is not None}


def _matching(pattern: str) -> list[str]:
    """Return what a pattern finds, absolute patterns too, and hidden files, which Spark's patterns find."""
    return [] if "\0" in pattern else glob.glob(pattern, recursive=True, include_hidden=True)  # noqa: PTH207


def _number(path: Path) -> tuple[int, int] | None:
    """Return the number of a file; None if there is none that may be seen."""
    with suppress(OSError, ValueError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None
