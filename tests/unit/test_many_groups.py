"""Very many groups are measured, told and kept block by block: nobody can tell from what is shown."""

import numpy as np
import pyarrow as pa
import pytest

from farthing import Bounds, Budget, Session
from farthing.accuracy.stored_promise import StoredPromise
from farthing.mechanisms.gaussian import Measured
from farthing.session.answering import gaussian_count, refinement_loop
from farthing.session.core import records
from farthing.session.core.records import Record, claims_of, keys_to_bytes, listed_of, with_claims

KEYS = {"zone": list(range(7))}
TABLE = pa.table({"zone": np.repeat(np.arange(7), 400 * np.arange(7))})


@pytest.fixture
def blocks(monkeypatch):
    """Make every block two groups, or two rows of a record."""
    for module, name in ((refinement_loop, "BLOCK"), (gaussian_count, "BLOCK"), (records, "_BATCH")):
        monkeypatch.setattr(module, name, 2)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("budget", [Budget(mu=8), Budget(epsilon=60)], ids=["gdp", "pure"])
def test_blocks_are_told_as_one_answer(budget):
    """Looks rise, groups that are done never fall, all are done at the end, and each count is within its target."""
    seen = []
    with Session(TABLE, budget=budget, bounds=Bounds(max_groups=1)) as session:
        answer = session.count(by="zone", keys=KEYS, relative=0.1, absolute=20, progress=seen.append)
        again = session.count(by="zone", keys=KEYS, relative=0.1, absolute=20)
        sharper = answer.refine(relative=0.05, absolute=10)

    assert list(range(1, len(seen) + 1)) == [told.look for told in seen]
    done = [told.done for told in seen]
    assert (sorted(done), 7) == (done, done[-1])
    assert {7} == {told.groups for told in seen}
    assert not again.paid
    assert again.value.tolist() == answer.value.tolist()
    for one, wide in ((answer, 20), (sharper, 10)):
        truth = 400 * np.arange(7)
        assert (np.abs(one.value - truth) <= 3 * np.maximum(0.1 * truth, wide)).all()
        assert one.met.all()
        assert one.optimality().ratio > 0


@pytest.mark.usefixtures("blocks")
def test_records_in_batches_are_the_same_records():
    """What is passed on batch by batch is what was written, claims and all; so are the facts that tags are made of."""
    measured = Measured(np.arange(7) * 5, np.arange(7) + 3, -4)
    record = Record(measured, StoredPromise(0.1, 2.0, 2.0, 0.05, 3.0, 100), "keys", keys_to_bytes(pa.table(KEYS)))
    blob = with_claims(record.to_bytes(), (0.05, 0.01))
    read = Record.from_bytes(blob)

    assert (0.05, 0.01) == claims_of(blob)
    assert measured.mean.tolist() == read.measured.mean.tolist()
    assert measured.information.tolist() == read.measured.information.tolist()
    assert (7, 3, record.listed) == listed_of(blob)
    assert (record.kept, record.keys) == (read.kept, read.keys)
