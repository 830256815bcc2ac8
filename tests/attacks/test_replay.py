"""Replaying recorded answers: a look-alike of the real data, wrong files, and the real data where they are at hand.

The real answers are not part of farthing. FARTHING_DIFFIX_DATA names a folder with answers.parquet and people.parquet.
"""

import os
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from farthing.attacks import tables
from farthing.attacks.coins import Coins
from farthing.attacks.diffix import Diffix
from farthing.attacks.published import HASHES, hash_condition
from farthing.attacks.replay import ANSWER_COLUMNS, PEOPLE_COLUMNS, replay
from farthing.attacks.target import Claim, Refused
from farthing.errors import DataError

pytestmark = pytest.mark.thorough

RANGES = ((2000, 3000), (3000, 5000))
REAL = os.environ.get("FARTHING_DIFFIX_DATA", "")


def recorded(queries):
    """Return answers and people of two ranges, as the attack of 2018 would have recorded them."""
    answers, people = [], []
    for low, high in RANGES:
        table = tables.loans(seed=5, low=low, high=high)
        diffix, known = Diffix(table), table.people
        people += [
            (low, high, *person) for person in zip(known.ids.tolist(), known.bits.astype(int).tolist(), strict=True)
        ]
        for place in Coins(0, "recorded", low).order(len(HASHES))[:queries]:
            found = diffix.answer(known.count(hash_condition("client_id", *HASHES[place])))
            answers.append((low, high, *HASHES[place], 0 if isinstance(found, Refused) else int(found)))
    return as_table(ANSWER_COLUMNS, answers), as_table(PEOPLE_COLUMNS, people)


def as_table(names, rows):
    """Return rows as an Arrow table."""
    return pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))


@pytest.fixture(scope="module")
def both():
    """Return a look-alike of the recorded data."""
    return recorded(500)


def saved(folder, answers, people):
    """Write both tables, and return where."""
    paths = folder / "answers.parquet", folder / "people.parquet"
    for table, path in zip((answers, people), paths, strict=True):
        parquet.write_table(table, path)
    return paths


def test_a_recorded_attack_is_replayed(tmp_path, both):
    """Hardly any of the 183 secrets is guessed wrong, and the verdict says so."""
    found = replay(*saved(tmp_path, *both))

    assert (183, "broken", 1_000) == (found.people, found.verdict, found.answers)
    assert 5 >= found.wrong == sum(part.wrong for part in found.parts)
    assert [73, 110] == [part.people for part in found.parts]
    assert all(1.5 < part.noise_sd < 2.5 for part in found.parts)


def test_the_result_is_plain(tmp_path, both):
    """For JSON: the number of people, of wrong guesses, and the verdict first."""
    found = replay(*saved(tmp_path, *both)).to_dict()

    assert ["people", "wrong", "verdict"] == list(found)[:3]
    assert {"range_low", "range_high", "people", "answers", "wrong", "noise_sd"} == set(found["parts"][0])


def test_files_of_text_are_read(tmp_path, both):
    """CSV does as well as Parquet."""
    paths = tmp_path / "answers.csv", tmp_path / "people.csv"
    for table, path in zip(both, paths, strict=True):
        csv.write_csv(table, path)
    one, other = replay(*paths), replay(*saved(tmp_path, *both))

    assert (other.people, other.wrong, other.epsilon_lower) == (one.people, one.wrong, one.epsilon_lower)


def test_a_weak_claim_holds(tmp_path, both):
    """What is promised at epsilon 20 is not refuted by 183 right guesses; it could not have been."""
    assert "undecided" == replay(*saved(tmp_path, *both), claim=Claim(20)).verdict


def test_too_few_answers_decide_nothing(tmp_path, both):
    """Fewer answers than people leave the guesses to chance."""
    answers, people = both
    few = pa.concat_tables([answers.slice(0, 20), answers.slice(500, 20)])

    assert "undecided" == replay(*saved(tmp_path, few, people)).verdict


def test_the_same_answer_to_everything_decides_nothing(tmp_path, both):
    """It tells nothing, so that nothing could have been refuted."""
    answers, people = both
    same = answers.set_column(5, "answer", pa.array([30] * len(answers)))

    assert "undecided" == replay(*saved(tmp_path, same, people)).verdict


def test_absurd_answers_are_refused(tmp_path, both):
    """Far more than there are people, and missing numbers by column."""
    answers, people = both
    for wrong, words in [
        ([1e308] * len(answers), "number of people"),
        ([float("nan")] * 3 + [5.0] * (len(answers) - 3), "3 in the column answer"),
    ]:
        paths = saved(tmp_path, answers.set_column(5, "answer", pa.array(wrong)), people)
        with pytest.raises(DataError, match=words):
            replay(*paths)


def test_suppressed_answers_are_left_out(tmp_path, both):
    """A zero is no answer."""
    answers, people = both
    zeros = pa.array([0] * 100 + answers["answer"].to_pylist()[100:])
    found = replay(*saved(tmp_path, answers.set_column(5, "answer", zeros), people))

    assert 900 == found.answers
    assert "broken" == found.verdict


def changed(table, name, values):
    """Return a table with another column."""
    return table.set_column(table.column_names.index(name), name, pa.array(values))


@pytest.mark.parametrize(
    ("which", "spoil", "said"),
    [
        (0, lambda table: table.drop_columns(["offset"]), "without offset"),
        (1, lambda table: table.drop_columns(["status_is_c"]), "without status_is_c"),
        (0, lambda table: table.slice(0, 0), "at least one row"),
        (0, lambda table: changed(table, "answer", ["many"] * table.num_rows), "numbers in every column"),
        (0, lambda table: changed(table, "answer", [None] * table.num_rows), "no value missing"),
        (0, lambda table: changed(table, "answer", [-1] * table.num_rows), "answers >= 0"),
        (0, lambda table: changed(table, "multiplier", [0] * table.num_rows), "multipliers > 0"),
        (0, lambda table: table.slice(0, 500), "none for 3000 to 5000"),
        (1, lambda table: changed(table, "status_is_c", [2] * table.num_rows), "0 or 1"),
        (1, lambda table: changed(table, "client_id", [2001] * table.num_rows), "twice"),
        (1, lambda table: changed(table, "client_id", range(table.num_rows)), "lies in its range"),
    ],
)
def test_wrong_files_are_refused(tmp_path, both, which, spoil, said):
    """What is wrong with a file is said, with its name and what to do."""
    tables_ = list(both)
    tables_[which] = spoil(tables_[which])
    with pytest.raises(DataError, match=said) as refusal:
        replay(*saved(tmp_path, *tables_))

    assert str(refusal.value).startswith(("answers.parquet cannot", "people.parquet cannot")[which])


def test_files_that_are_none(tmp_path):
    """A file that is missing, or is no table, is refused."""
    garbage = tmp_path / "people.parquet"
    garbage.write_bytes(b"PAR1 but not really")
    for path in (tmp_path / "nothing.csv", tmp_path / "nothing.parquet", garbage):
        with pytest.raises(DataError, match="a CSV or Parquet file"):
            replay(path, garbage)


@pytest.mark.skipif(not REAL, reason="set FARTHING_DIFFIX_DATA to a folder with the answers of the attack of 2018")
@pytest.mark.parametrize("method", ["least_squares", "box", "l1"])
def test_the_real_answers(method):
    """At most 5 of the 455 real statuses are guessed wrong from the answers of the commercial system."""
    found = replay(Path(REAL) / "answers.parquet", Path(REAL) / "people.parquet", method=method)

    assert (455, "broken", 13_987) == (found.people, found.verdict, found.answers)
    assert 5 >= found.wrong
    assert method != "least_squares" or found.seconds < 2
