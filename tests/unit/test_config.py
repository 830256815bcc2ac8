"""farthing.toml: written, read back, and refused where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from farthing.cli.input import config
from farthing.cli.input.config import Config
from farthing.errors import DataError, FarthingError, InvalidOption

GOLDEN = Path(__file__).parents[1] / "golden" / "cli" / "farthing.toml"

GOOD = """
[table]
path = "rides.parquet"
name = "rides"
[budget]
epsilon = 1
delta = 1e-6
[ledger]
path = "rides.ledger"
"""


def full(folder: Path) -> Config:
    """A config that says everything."""
    return Config(
        folder=folder,
        table="data/rides*.parquet",
        name="rides",
        unit='rider "id"',
        budget={"epsilon": 1.0, "delta": 1e-6, "keys_delta": 1e-7},
        ledger="rides.ledger",
        version="2013-Q1",
        bounds={"max_groups": 5, "max_rows": 20, "lower": 0, "upper": 99.5},
        keys={"zone": "@zones.csv:id", "day of week": "1..7"},
        public={"zones": "zones.csv"},
        protected={"visits": "data/visits*.csv"},
    )


def test_what_is_written_reads_back_the_same(tmp_path):
    """The text of a config has the config's meaning, odd names and quotes included."""
    made = full(tmp_path)
    (tmp_path / config.FILE).write_text(config.text(made), encoding="utf-8")
    assert made == config.read(str(tmp_path / config.FILE))


def test_the_text_is_the_golden_one(tmp_path):
    """The file that people find in their folder does not change by accident."""
    assert GOLDEN.read_text(encoding="utf-8") == config.text(full(tmp_path))


def test_left_out_settings_have_defaults(tmp_path):
    """Unit, version, bounds and keys may be left out."""
    (tmp_path / "x.toml").write_text(GOOD, encoding="utf-8")
    found = config.read(str(tmp_path / "x.toml"))
    assert ("row", "1", {}, {}) == (found.unit, found.version, found.bounds, found.keys)


def test_paths_start_at_the_folder_of_the_file(tmp_path, monkeypatch):
    """A config works from any folder; brackets in its folder's name are no pattern."""
    home = tmp_path / "a [b]"
    home.mkdir()
    (home / config.FILE).write_text(config.text(full(home)), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    found = config.read("a [b]")
    assert home / "rides.ledger" == found.ledger_place
    assert str(tmp_path / "a [[]b]" / "data" / "rides*.parquet") == found.table_path


def test_a_missing_file_says_how_to_make_one(tmp_path, monkeypatch):
    """Without a config the next step is init."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidOption, match="farthing init"):
        config.read(None)
    with pytest.raises(InvalidOption, match="no such config file"):
        config.read("other.toml")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[budget]", "[budget", "is not TOML"),
        ("[ledger]", "[legder]", "did you mean ledger"),
        ('name = "rides"', 'name = "rides"\nunits = "x"', "did you mean unit"),
        ('name = "rides"', 'name = "rides"\nq = "x"', "remove it"),
        ('name = "rides"', "", "does not say table.name"),
        ('path = "rides.ledger"', "", "does not say ledger.path"),
        ("epsilon = 1\ndelta = 1e-6", "", "has no budget"),
        ("epsilon = 1", 'epsilon = "1"', "budget.epsilon .* a number"),
        ("epsilon = 1", "epsilon = true", "wrong type"),
        ("[ledger]", "[bounds]\nmax_rows = 1.5\n[ledger]", "bounds.max_rows .* a whole number"),
        ("[ledger]", "[keys]\nzone = 3\n[ledger]", "keys.zone .* a list"),
        ("[table]", "keys = 3\n[table]", "not a section"),
    ],
)
def test_wrong_settings_are_refused_by_name(tmp_path, old, new, says):
    """Unknown, missing and mistyped settings each have their own words, and exit with 2."""
    (tmp_path / "x.toml").write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(FarthingError, match=says) as refused:
        config.read(str(tmp_path / "x.toml"))
    assert refused.value.exit_code == 2


def test_a_file_that_is_no_text_is_refused(tmp_path):
    """Bytes that are no UTF-8 are a data error."""
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="cannot be read"):
        config.read(str(tmp_path / "x.toml"))
