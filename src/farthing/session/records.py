"""What the ledger keeps of a question: its public measurements, and the tightest rule they were stopped by.

One Arrow-IPC blob a question, compressed with zstd: int64 means and informations, one row a group, and a few facts in
the schema's metadata. Everything in it was released; nothing in it is secret.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from farthing.accuracy.kept import Kept
from farthing.errors import LedgerError
from farthing.mechanisms.gaussian import Measured

if TYPE_CHECKING:
    from typing import Self

_FORMAT = b"farthing-record-1"


@dataclass(frozen=True, slots=True)
class Record:
    """The public state of a question.

    Attributes:
        measured: means and informations of all groups, in the order of the key list.
        kept: the promise it keeps: the tightest rule so far.
        keys: the fingerprint of the key list, a check that the rows mean what we think.
    """

    measured: Measured
    kept: Kept
    keys: str

    def to_bytes(self) -> bytes:
        """Return the blob that the ledger stores."""
        import pyarrow as pa

        facts = {"kept": asdict(self.kept), "unit_log2": self.measured.unit_log2, "keys": self.keys}
        schema = pa.schema(
            [("mean", pa.int64()), ("information", pa.int64())],
            metadata={_FORMAT: json.dumps(facts).encode()},
        )
        batch = pa.record_batch([self.measured.mean, self.measured.information], schema=schema)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_batch(batch)
        return bytes(sink.getvalue())

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """Return the record in a blob; refuse one that is not ours."""
        import pyarrow as pa

        try:
            table = pa.ipc.open_stream(blob).read_all()
            metadata = table.schema.metadata or {}
            facts = json.loads(metadata[_FORMAT])
            mean, information = (table.column(name).to_numpy() for name in ("mean", "information"))
            measured = Measured(mean.astype(np.int64), information.astype(np.int64), int(facts["unit_log2"]))
            return cls(measured, Kept(**facts["kept"]), facts["keys"])
        except (ValueError, KeyError, TypeError, pa.ArrowInvalid) as error:
            raise LedgerError(
                "a stored measurement cannot be read",
                rule="written by this version or an older one",
                got=type(error).__name__,
                next_step="update farthing, or declare a new data version to start the question afresh",
            ) from None
