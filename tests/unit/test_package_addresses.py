"""The project's URLs: told by the forge that builds a release, and invented nowhere."""

import importlib.util
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
FORGE = {"GITHUB_SERVER_URL": "https://forge.example", "GITHUB_REPOSITORY": "people/farthing"}


@pytest.fixture
def hook(monkeypatch):
    """Return hatch_build.py, with a stand-in for the builder, which is not installed where tests run."""
    plugin = ModuleType("hatchling.metadata.plugin.interface")
    plugin.MetadataHookInterface = object
    for name in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, plugin.__name__, plugin)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_release_tells_where_the_project_is(hook, monkeypatch):
    """Where a forge builds, every address is below the project's own, and the files that they name exist."""
    for name, value in FORGE.items():
        monkeypatch.setenv(name, value)
    metadata = {}

    hook.Addresses().update(metadata)

    home = "https://forge.example/people/farthing"
    assert metadata["urls"]["Homepage"] == home
    assert all(url.startswith(home) for url in metadata["urls"].values())
    files = [url.partition("/blob/main/")[2] for url in metadata["urls"].values() if "/blob/main/" in url]
    assert [] == [name for name in files if not (ROOT / name).is_file()]
    assert len(files) >= 3


@pytest.mark.parametrize("missing", FORGE)
def test_a_build_elsewhere_invents_no_address(hook, missing):
    """Nobody's own build claims a home page that it does not know."""
    assert hook.addresses({name: value for name, value in FORGE.items() if name != missing}) == {}


def test_the_package_asks_the_hook():
    """The addresses are left to the hook, and written down nowhere else."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())

    assert project["project"]["dynamic"] == ["urls"]
    assert "custom" in project["tool"]["hatch"]["metadata"]["hooks"]
