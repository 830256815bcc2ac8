"""Hand-written bugs of farthing itself are seen by the audit: a few in the gate, all of them in the slow tier."""

import sys
from pathlib import Path

import pytest
from attacks import mutant_checks, mutating
from attacks.mutants import MUTANTS, Mutant
from attacks.promises import PROMISES

pytestmark = pytest.mark.thorough

SOURCE = mutating.ROOT / "src"
GATE = (
    "half the sigma",
    "settled below use",
    "two askers at once, both charged",
    "the engine's words in an error",
)
QUICK = [mutant for mutant in MUTANTS if mutant.name in GATE]
SLOW = [mutant for mutant in MUTANTS if mutant.name not in GATE]
HARMLESS = Mutant(
    "a docstring",
    "session/core/transaction.py",
    (('"""Answer a question, and book it', '"""Answer one question, and book it'),),
    ("books",),
)


@pytest.fixture(scope="module")
def copy():
    """A copy of the source."""
    with mutating.copied() as here:
        yield here


def test_every_mutant_fits_the_source():
    """Each edit's old text is in its file, once; names differ; their checks exist; there are enough of them."""
    for mutant in MUTANTS:
        assert mutant.applied(SOURCE / "farthing") != (SOURCE / "farthing" / mutant.file).read_text()
        assert set(mutant.checks) <= set(mutant_checks.CHECKS)
    assert len(MUTANTS) == len({mutant.name for mutant in MUTANTS})
    assert 30 <= len(MUTANTS)
    assert len(GATE) == len(QUICK)


def test_every_promise_has_a_bug_and_every_bug_breaks_a_promise():
    """The table of promises names bugs that there are, at least one for each, and leaves none out."""
    named = [name for bugs in PROMISES.values() for name in bugs]

    assert all(PROMISES.values())
    assert {mutant.name for mutant in MUTANTS} == set(named)


def test_an_edit_that_fits_no_more_fails_loudly():
    """Where the source moved on, the list has to be brought up to date."""
    gone = Mutant("gone", "session/core/transaction.py", (("no such text", ""),), ("books",))

    with pytest.raises(LookupError, match="0 times in"):
        gone.applied(SOURCE / "farthing")


def test_a_change_that_is_no_bug_survives(copy):
    """The checks are silent on the copy, which is what they were run on, and which is left as it was."""
    clean = (copy / "farthing" / HARMLESS.file).read_text()

    assert "" == mutating.judged(HARMLESS, copy).killed_by
    assert clean == (copy / "farthing" / HARMLESS.file).read_text()


def test_a_farthing_that_does_not_start_is_seen(copy):
    """A bug that breaks the import fails the first check, whatever it is."""
    broken = Mutant(
        "broken", "session/core/transaction.py", (("PATIENCE_S: Final = 30.0", "PATIENCE_S = ("),), ("books",)
    )

    assert "books" == mutating.judged(broken, copy).killed_by


@pytest.mark.statistical
def test_sound_source_passes_the_quick_checks(copy):
    """What kills the quick mutants is silent on sound source."""
    names = tuple(dict.fromkeys(check for mutant in QUICK for check in mutant.checks))

    assert [] == [line for line in mutating.checked(names, copy) if line["found"]]


@pytest.mark.statistical
@pytest.mark.parametrize("name", GATE)
def test_quick_mutants_are_seen(copy, name):
    """Each of the quick bugs is seen."""
    (mutant,) = (each for each in QUICK if each.name == name)

    assert mutating.judged(mutant, copy).killed_by in mutant.checks


@pytest.mark.slow
@pytest.mark.statistical
def test_all_mutants_are_seen_and_sound_source_passes(copy):
    """Every bug is seen by the checks that are named for it, none of which cries on sound source."""
    names = tuple(mutant_checks.CHECKS)

    assert [] == [line for line in mutating.checked(names, copy) if line["found"]]
    assert [] == [mutant.name for mutant in SLOW if not mutating.judged(mutant, copy).killed_by]


def test_the_page_has_every_mutant():
    """The table of docs/figures.md was made by bench/mutants.py from this list."""
    page = Path(mutating.ROOT / "docs" / "figures.md").read_text()

    assert [] == [mutant.name for mutant in MUTANTS if f"| {mutant.name} |" not in page]
    assert sys.version_info >= (3, 11)
