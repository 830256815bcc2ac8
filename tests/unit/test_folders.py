"""Files and folders that are there whole or not at all: new ones, empty ones, links and other disks."""

from __future__ import annotations

from pathlib import Path

import pytest

from farthing.errors import DataError, InvalidOption
from farthing.folders import beside, named, require_free


def put(folder: Path) -> None:
    """Write two files and a folder with one, and name them."""
    with beside(folder) as near:
        (near / "inner").mkdir()
        for name in ("a", "b", "inner/c"):
            (near / name).write_text(name, encoding="utf-8")
        named(near, folder)


def files(folder: Path) -> list[str]:
    """Return all that is in a folder."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


WHOLE = ["a", "b", "inner", "inner/c"]


@pytest.mark.parametrize("kind", ["new", "empty", "link", "here"])
def test_what_is_free_is_written(kind, tmp_path, monkeypatch):
    """A new folder, and an empty one by its name, by a link, or as the folder of the process."""
    real = tmp_path / "real"
    place = {"link": tmp_path / "link", "here": Path()}.get(kind, real)
    if kind != "new":
        real.mkdir(mode=0o750)
        monkeypatch.chdir(real)
    if kind == "link":
        place.symlink_to(real)
    before = real.stat() if kind != "new" else None
    require_free(place)
    put(place)

    assert files(real) == WHOLE
    assert before is None or (before.st_ino, before.st_mode) == (real.stat().st_ino, real.stat().st_mode)
    assert {"real", "link"} >= {path.name for path in tmp_path.iterdir()}


def test_a_folder_that_is_there_is_never_renamed_over(tmp_path, monkeypatch):
    """Nor is anything written beside it: it may be another disk, in a folder that cannot be written."""
    place, renamed, made = tmp_path / "mounted", Path.rename, Path.mkdir
    place.mkdir()

    def rename(path, target):
        assert place in Path(target).parents
        return renamed(path, target)

    def mkdir(path, *rest, **more):
        assert path == place.parent or place in path.parents
        return made(path, *rest, **more)

    monkeypatch.setattr(Path, "rename", rename)
    monkeypatch.setattr(Path, "mkdir", mkdir)
    require_free(place)
    put(place)
    assert files(place) == WHOLE


@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_stops_the_second_file_leaves_none(problem, tmp_path, monkeypatch):
    """In a folder that is there, files are moved one by one: what was moved is taken back."""
    (tmp_path / "mine").mkdir()
    renamed = Path.rename

    def rename(path, target):
        if path.name == "b":
            raise problem
        return renamed(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises((DataError, KeyboardInterrupt)):
        put(tmp_path / "mine")
    assert files(tmp_path) == ["mine"]


def test_what_is_taken_is_refused(tmp_path):
    """A folder with a file, a file, a link that leads nowhere and one that leads to itself; a folder within a file."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").touch()
    (tmp_path / "lost").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for place in ("full", "full/a", "lost", "loop"):
        with pytest.raises(InvalidOption, match="there already"):
            require_free(tmp_path / place)
    with pytest.raises(DataError, match="cannot be written"):
        require_free(tmp_path / "full/a/b")
    with pytest.raises(InvalidOption, match="there already"):
        put(tmp_path / "full")
    assert files(tmp_path / "full") == ["a"]


def test_asking_for_a_place_leaves_nothing(tmp_path):
    """Folders above it that are made to see whether it can be are removed again; those that were there stay."""
    (tmp_path / "old").mkdir()
    require_free(tmp_path / "old" / "new" / "deep" / "out")
    with pytest.raises(DataError, match="cannot be written"):
        require_free(tmp_path / "old" / "new" / ("x" * 300) / "out")
    assert files(tmp_path) == ["old"]
