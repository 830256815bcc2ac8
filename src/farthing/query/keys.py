"""Public group keys: the groups that are answered, in order, whether or not any row falls in them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from farthing.errors import InvalidKeys
from farthing.plain_arrays import arrow_array, numbers_of
from farthing.query.arrange import arrangement, distinct
from farthing.query.reading import DECLARE
from farthing.query.schema import REAL_TYPES, Schema, Type

if TYPE_CHECKING:
    from typing import Self

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

MOST_GROUPS: Final = 10**8
"""The most groups of one answer: an answer holds several numbers for each."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Distinct combinations of key values, one group each, in the order of the answer.

    Guarantee: a row belongs to at most one group.
    Proof: combinations differ after the cast to the one type in which they are compared with rows (64-bit integers,
        doubles with one zero and no NaN, text by code points, dates, microseconds; NULL equals only NULL).
    Assumes: an engine that compares in that type.
    Rounds: a key for a FLOAT or DECIMAL column to the nearest double.

    Attributes:
        table: an Arrow table of the combinations; the columns are named as the grouping columns.
        fingerprint: sha256 (hex) of names, types, values and their order.
        order: int64[groups], the rows of the table in the one order of these keys, or None if they are in it.

    >>> schema = Schema.of({"dest": Type.STRING, "month": Type.INTEGER})
    >>> keys = Keys.of(("dest", "month"), {"dest": ["ORD", "ATL"], "month": range(1, 13)}, schema)
    >>> len(keys), keys.column("dest")[12].as_py()
    (24, 'ATL')
    """

    table: pa.Table = field(compare=False, repr=False)
    fingerprint: str
    order: NDArray[np.int64] | None = field(default=None, compare=False, repr=False)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the grouping columns."""
        return tuple(self.table.column_names)

    def column(self, name: str) -> pa.Array:
        """Return the keys of one grouping column, aligned with the answer."""
        return self.table.column(name).combine_chunks()

    @property
    def ranges(self) -> tuple[range, ...] | None:
        """Return one range a column, if the keys are their product, the first varying slowest; None otherwise.

        >>> Keys.of(("a", "b"), {"a": [7, 8], "b": range(3)}, Schema.of(dict.fromkeys("ab", Type.INTEGER))).ranges
        (range(7, 9), range(0, 3))
        """
        import numpy as np
        import pyarrow as pa

        columns = [self.column(name) for name in self.names]
        if not len(self) or any(column.type != pa.int64() or column.null_count for column in columns):
            return None
        numbers = [numbers_of(column) for column in columns]
        found = tuple(range(int(column[0]), int(column[-1]) + 1) for column in numbers)
        if math.prod(max(0, each.stop - each.start) for each in found) != len(self):  # len() ends at 2^63
            return None
        told = np.indices(tuple(map(len, found)), np.int32).reshape(len(found), -1)
        same = zip(numbers, found, told, strict=True)
        return found if all(np.array_equal(column - each[0], place) for column, each, place in same) else None

    @classmethod
    def of(cls, by: tuple[str, ...], given: Any, schema: Schema) -> Keys | None:
        """Return the checked keys of a question; None without grouping columns.

        Args:
            by: the grouping columns.
            given: one list (or range, NumPy, pandas, Polars or Arrow array) a column, as a mapping: their cross
                product, the first column varying slowest; or a table (pandas, Polars, Arrow, a list of dicts) of
                combinations. None (NULL) is a key like any other.
            schema: the table's schema.

        Raises:
            InvalidKeys: keys missing, repeated, empty, NaN, for other columns, or of another type than the column.
            UnsupportedQuery: an unknown grouping column.
        """
        if not by:
            if given is not None:
                raise InvalidKeys(
                    "keys without grouping columns",
                    next_step="name the columns, with by= or GROUP BY",
                    rule="keys belong to grouping columns",
                )
            return None
        kinds = {column: _groupable(column, schema) for column in by}
        if given is None:
            raise _missing(by)
        whole = _as_table(given)
        lists = given if whole is None else {name: whole.column(name) for name in whole.column_names}
        _same_columns(by, lists)
        _not_too_many(math.prod(map(_size, lists.values())) if whole is None else whole.num_rows)
        columns = {name: _column(name, lists[name], kinds[name]) for name in by}
        table = _product(columns) if whole is None else _combinations(columns)
        return cls(table, _fingerprint(table), arrangement(table))

    def arranged(self) -> Self:
        """Return the same keys in their one order: columns by name, rows by value."""
        table = self.table.select(sorted(self.names))
        if self.order is not None:
            table = table.take(self.order).combine_chunks()
        return type(self)(table, _fingerprint(table))


def empty_keys(kinds: Mapping[str, Type]) -> pa.Table:
    """Return a list of no keys, with its columns.

    >>> empty_keys({"dest": Type.STRING}).column_names
    ['dest']
    """
    import pyarrow as pa

    types = {
        Type.INTEGER: pa.int64(),
        Type.STRING: pa.large_string(),
        Type.BOOLEAN: pa.bool_(),
        Type.DATE: pa.date32(),
        Type.TIMESTAMP: pa.timestamp("us"),
    }
    return pa.table({name: pa.array([], types.get(kind, pa.float64())) for name, kind in kinds.items()})


def _missing(by: tuple[str, ...]) -> InvalidKeys:
    """Return the error that says how keys are given."""
    shown = ", ".join(f"{column!r}: [...]" for column in by)
    return InvalidKeys(
        "GROUP BY without keys",
        rule="the groups of an answer are public: which ones exist in the data is private",
        next_step=f"pass keys={{{shown}}}, a list, range or column of a public table for each grouping column; or "
        'keys="private" to find the groups privately',
        missing="keys",
    )


def _groupable(column: str, schema: Schema) -> Type:
    """Return the type of a grouping column; refuse one that cannot be listed."""
    kind = schema.require(column)
    if kind is Type.OTHER:
        raise InvalidKeys(
            f"column {column!r} cannot be grouped by",
            rule="keys are numbers, texts, truth values or dates",
            next_step="group by another column",
        )
    return kind


def _as_table(given: Any) -> pa.Table | None:
    """Return a table of combinations as Arrow, or None for one list a column."""
    import pyarrow as pa

    if isinstance(given, Mapping):
        return None
    try:
        if isinstance(given, pa.Table):
            return given
        if isinstance(given, Sequence) and given and all(isinstance(row, Mapping) for row in given):
            names = list(given[0])
            return pa.table({name: pa.array([row[name] for row in given]) for name in names})
        if hasattr(given, "columns") and hasattr(given, "iloc"):
            return pa.Table.from_pandas(given, preserve_index=False)
        if hasattr(given, "__arrow_c_stream__") and hasattr(given, "columns"):
            return pa.table(given)
    except (pa.ArrowException, KeyError, TypeError, ValueError, OverflowError):
        raise InvalidKeys(
            "keys that are not a table",
            rule="every row of the keys has the same columns and types",
            next_step="pass a table with one column for each grouping column",
        ) from None
    raise InvalidKeys(
        "keys that are neither lists nor a table",
        got=type(given).__name__,
        next_step='pass keys={"column": [...]}, or a table with one column for each grouping column',
        rule="one list a column, or a table of combinations",
    )


def _size(given: Any) -> int:
    """Return how many keys a list has, without reading it; 1 for what is refused as no list."""
    if isinstance(given, range) and given:
        return abs((given[-1] - given[0]) // given.step) + 1  # len() refuses what is above 2^63
    return len(given) if hasattr(given, "__len__") else 1


def _same_columns(by: tuple[str, ...], lists: Mapping[str, Any]) -> None:
    """Refuse keys for columns that are not grouped by, and grouping columns without keys."""
    absent = tuple(name for name in by if name not in lists)
    if absent:
        raise _missing(absent)
    extra = [str(name) for name in lists if name not in by]
    if extra:
        raise InvalidKeys(
            f"keys for {extra[0]!r}, which is not a grouping column",
            rule="keys name exactly the grouping columns",
            got=", ".join(extra),
            next_step="the grouping columns are " + ", ".join(by),
        )


def _column(name: str, given: Any, kind: Type) -> pa.Array:
    """Return one list of keys in the canonical Arrow type of its column."""
    import pyarrow as pa

    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__len__"):
        raise InvalidKeys(
            f"keys of {name!r} are not a list",
            got=type(given).__name__,
            next_step="pass a list of values",
            rule="keys are lists of values",
        )
    if len(given) == 0:
        raise InvalidKeys(
            f"keys of {name!r} are empty", rule="at least one key a column", next_step="list at least one value"
        )
    try:
        array = _arrow(given)
        if pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
        if not _fits(array.type, kind):
            raise _wrong_type(name, kind, str(array.type))
        return _cast(name, array, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
        if isinstance(problem, InvalidKeys):
            raise
        raise _wrong_type(name, kind, "mixed or unusable values") from None


def _arrow(given: Any) -> pa.Array:
    """Return any list of values as one Arrow array."""
    import pyarrow as pa

    if hasattr(given, "to_arrow"):
        given = given.to_arrow()
    try:
        values = given if isinstance(given, pa.Array | pa.ChunkedArray) else arrow_array(given)
    except OverflowError:  # pyarrow takes Python's whole numbers for 64 bits with a sign
        if not all(each is None or isinstance(each, int) for each in given):
            raise
        values = pa.array(given, pa.uint64())
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _fits(arrow: pa.DataType, kind: Type) -> bool:
    """Return whether keys of an Arrow type may stand for a column's type."""
    import pyarrow.types as t

    whole = t.is_integer(arrow)
    fits = {
        Type.INTEGER: whole,
        Type.FLOAT: whole or t.is_floating(arrow) or t.is_decimal(arrow),
        Type.DECIMAL: whole or t.is_floating(arrow) or t.is_decimal(arrow),
        Type.STRING: t.is_string(arrow) or t.is_large_string(arrow) or t.is_string_view(arrow),
        Type.BOOLEAN: t.is_boolean(arrow),
        Type.DATE: t.is_date(arrow),
        Type.TIMESTAMP: t.is_date(arrow) or (t.is_timestamp(arrow) and arrow.tz is None),
        Type.OTHER: False,
    }
    return bool(t.is_null(arrow) or fits[kind])


def _wrong_type(name: str, kind: Type, got: str) -> InvalidKeys:
    """Return the error for keys of another type than their column."""
    return InvalidKeys(
        f"keys of {name!r} have the wrong type",
        rule=f"keys of a column have its type, {kind}",
        got=got,
        next_step=f"pass {kind} values"
        + (" without zone, in UTC where the table has zones" if ", tz=" in got else "")
        + (f"; {DECLARE}" if kind is Type.STRING else ""),
    )


def _cast(name: str, array: pa.Array, kind: Type) -> pa.Array:
    """Return keys in the type in which rows are compared; refuse NaN, fold -0.0 into 0.0."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind is Type.INTEGER:
        top = pc.max(array).as_py() if pa.types.is_uint64(array.type) else None
        return array if top is not None and top >= 2**63 else array.cast(pa.int64())
    if kind in REAL_TYPES:
        cast = array.cast(pa.float64(), safe=False)
        if pc.any(pc.is_nan(cast)).as_py():
            raise InvalidKeys(
                f"NaN among the keys of {name!r}",
                rule="a key is a number or NULL",
                got=str(math.nan),
                next_step="leave NaN out of the keys",
            )
        return pc.add(cast, pa.scalar(0.0))
    types = {
        Type.STRING: pa.large_string(),
        Type.BOOLEAN: pa.bool_(),
        Type.DATE: pa.date32(),
        Type.TIMESTAMP: pa.timestamp("us"),
    }
    return array.cast(types[kind])


def _product(columns: dict[str, pa.Array]) -> pa.Table:
    """Return the cross product of lists, the first column varying slowest."""
    import numpy as np
    import pyarrow as pa

    sizes = [len(array) for array in columns.values()]
    groups = math.prod(sizes)
    _not_too_many(groups)
    for name, array in columns.items():
        _distinct(pa.table({name: array}))
    if len(columns) == 1:
        return pa.table(columns)
    places = np.unravel_index(np.arange(groups), sizes)
    return pa.table(
        {name: values.take(arrow_array(at)) for (name, values), at in zip(columns.items(), places, strict=True)}
    )


def _combinations(columns: dict[str, pa.Array]) -> pa.Table:
    """Return listed combinations as a table of distinct rows."""
    import pyarrow as pa

    table = pa.table(columns)
    _not_too_many(table.num_rows)
    _distinct(table)
    return table


def _not_too_many(groups: int) -> None:
    """Refuse more groups than an answer can hold."""
    if groups > MOST_GROUPS:
        raise InvalidKeys(
            "too many groups",
            rule=f"at most {MOST_GROUPS} groups an answer",
            got=groups,
            next_step="list fewer keys, or ask in parts",
        )


def _distinct(table: pa.Table) -> None:
    """Refuse repeated keys: a row would count twice."""
    names = table.column_names
    alone = len(names) == 1
    found = len(distinct(table.column(0))) if alone else table.group_by(names, use_threads=False).aggregate([]).num_rows
    if found == table.num_rows:
        return
    counts = table.group_by(names, use_threads=False).aggregate([([], "count_all")])
    repeated = next(row for row in counts.to_pylist() if row["count_all"] > 1)
    raise InvalidKeys(
        "repeated keys",
        rule="every group is listed once",
        got=", ".join(f"{name}={repeated[name]!r}" for name in names),
        next_step="list each group once",
    )


def _fingerprint(table: pa.Table) -> str:
    """Return the sha256 of names, types, values and order, read from buffers: no Python object a key."""
    digest = hashlib.sha256()
    for name in table.column_names:
        array = table.column(name).combine_chunks()
        digest.update(repr((name, str(array.type), len(array))).encode())
        for part in _parts(array):
            digest.update(part)
    return digest.hexdigest()


def _parts(array: pa.Array) -> list[bytes]:
    """Return the bytes that decide an array: which values are NULL, then the values (with lengths, for text)."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    valid = np.packbits(numbers_of(array.is_valid())).tobytes()
    if pa.types.is_large_string(array.type):
        full = array.fill_null("") if array.null_count else array
        lengths = numbers_of(pc.binary_length(full)).astype(np.int64)
        offsets = np.frombuffer(full.buffers()[1], np.int64)[full.offset : full.offset + len(full) + 1]
        letters = full.buffers()[2]
        return [
            valid,
            lengths.tobytes(),
            b"" if letters is None else letters[int(offsets[0]) : int(offsets[-1])].to_pybytes(),
        ]
    if pa.types.is_boolean(array.type):
        return [
            valid,
            np.packbits(array.fill_null(pa.scalar(0).cast(pa.bool_())).to_numpy(zero_copy_only=False)).tobytes(),
        ]
    plain = {pa.date32(): pa.int32(), pa.timestamp("us"): pa.int64()}
    values = array.view(plain[array.type]) if array.type in plain else array
    return [valid, numbers_of(values.fill_null(0) if values.null_count else values).tobytes()]
