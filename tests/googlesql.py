"""Google's own implementation of GoogleSQL, the language of BigQuery, in this process: it runs what is printed.

The package `zetasql` holds it as WebAssembly: the parser and analyzer of BigQuery, and the evaluator that says what
every function means. It is slow, keeps no table, and is not BigQuery: what is special to that service is not tested.
"""

from __future__ import annotations

import atexit
import ctypes
import datetime as dt
import os
import tempfile
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from farthing.query import Type

REQUIRED = "FARTHING_REQUIRE_ENGINES"
EPOCH = dt.date(1970, 1, 1)
IBIS = {Type.STRING: "string", Type.INTEGER: "int64", Type.FLOAT: "float64", Type.DATE: "date",
        Type.TIMESTAMP: "timestamp(6)", Type.BOOLEAN: "boolean"}  # fmt: skip
ZONED = "z"
"""Times in a column of this name have a zone; rows hold them in UTC."""


class GoogleSql:
    """A connection that looks like ibis' own to BigQuery and asks the evaluator.

    Attributes:
        tables: the kinds and rows of each table, by name.
    """

    name, version = "bigquery", "1"

    def __init__(self):
        from ibis.backends.sql.compilers.bigquery import BigQueryCompiler

        self.compiler = BigQueryCompiler()
        self.tables = {}
        self._service = _Service()

    def table(self, rows, kinds):
        """Return rows as an ibis table of this connection."""
        import ibis
        import ibis.expr.operations as ops

        name = f"t_{len(self.tables)}"
        self.tables[name] = (kinds, rows)
        schema = ibis.schema({
            column: "timestamp('UTC')" if column == ZONED else IBIS[kind] for column, kind in kinds.items()
        })  # fmt: skip
        return ops.DatabaseTable(name=name, schema=schema, source=self, namespace=ops.Namespace()).to_expr()

    def sql(self, text, schema=None):
        """Return what is told of a text, as an expression of ibis would be; without types it is analyzed at once."""
        if schema is None:
            self._service.analyzed(text, self.tables)
        return SimpleNamespace(to_pyarrow=lambda: self._answer(text, schema))

    def to_pyarrow(self, expr):
        """Return the rows of an expression."""
        text = self.compiler.to_sqlglot(expr.unbind()).sql(dialect="bigquery")
        return self._answer(text, expr.as_table().schema())

    def _answer(self, text, schema):
        """Return the rows of a text as Arrow."""
        columns = self._service.rows(text, self.tables)
        kinds = schema.to_pyarrow()
        return pa.table({field.name: pa.array(columns[field.name], field.type) for field in kinds}, schema=kinds)


@cache
def connection():
    """Return one connection, or skip."""
    if find_spec("zetasql") is None:
        if os.environ.get(REQUIRED):
            pytest.fail("BigQuery's language has to be tested here, and zetasql is not installed")
        pytest.skip("not installed, so BigQuery's language is not tested: zetasql")
    return GoogleSql()


class _Service:
    """The functions of the module that are needed, over protocol buffers."""

    def __init__(self):
        import tzdata
        from wasmtime import Linker, Store, WasiConfig

        engine, module = _module()
        wasi = WasiConfig()
        wasi.preopen_dir(str(Path(tzdata.__file__).parent / "zoneinfo"), "/usr/share/zoneinfo")
        self._store = Store(engine)
        self._store.set_wasi(wasi)
        linker = Linker(engine)
        linker.define_wasi()
        self._exports = linker.instantiate(self._store, module).exports(self._store)
        self._exports["_initialize"](self._store)
        for one in (self._exports["memory"], self._store, engine):
            atexit.register(one.close)  # while what they need to end is there
        self._language = _language(self)

    def analyzed(self, text, tables):
        """Have a text analyzed, or fail."""
        from zetasql.wasi._pb2.zetasql.local_service import local_service_pb2 as service

        request = service.AnalyzeRequest(sql_statement=text, simple_catalog=self._catalog(text, tables))
        request.options.language_options.CopyFrom(self._language)
        self.ask("Analyze", request, None)  # its tree is too deep for the reader of messages

    def rows(self, text, tables):
        """Return the columns of an answer by name."""
        from zetasql.wasi._pb2.zetasql.local_service import local_service_pb2 as service

        request = service.EvaluateQueryRequest(sql=text, simple_catalog=self._catalog(text, tables))
        request.options.language_options.CopyFrom(self._language)
        request.options.default_timezone = "UTC"
        for name, (kinds, rows) in self._named(text, tables):
            data = request.table_content[name].table_data
            data.SetInParent()  # there, though it may have no rows
            for row in rows:
                told = data.row.add()
                for column, kind in kinds.items():
                    _told(told.cell.add(), row[column], kind, zoned=column == ZONED)
        answer = self.ask("EvaluateQuery", request, service.EvaluateQueryResponse)
        names = [column.name for column in answer.prepared.columns]
        made = {name: [] for name in names}
        for row in answer.content.table_data.row:
            for name, cell in zip(names, row.cell, strict=True):
                made[name].append(_value(cell))
        return made

    def ask(self, method, request, response):
        """Return what a method answers."""
        sent = request.SerializeToString()
        store = self._store
        place = self._exports["wasm_malloc"](store, len(sent))
        size = self._exports["wasm_malloc"](store, 4)
        ctypes.memmove(self._start() + place, sent, len(sent))
        found = self._exports[f"ZetaSqlLocalService_{method}"](store, place, len(sent), size)
        self._exports["wasm_free"](store, place)
        if found == 0:
            length = self._exports["wasm_get_last_error_size"](store)
            raise ValueError(self._read(self._exports["wasm_get_last_error"](store), length).decode())
        length = int.from_bytes(self._read(size, 4), "little")
        told = None if response is None else response.FromString(self._read(found, length))
        self._exports["wasm_free"](store, found)
        return told

    def _start(self):
        """Return the address of the memory."""
        return ctypes.addressof(self._exports["memory"].data_ptr().contents)

    def _read(self, place, length):
        """Return bytes of the memory."""
        return ctypes.string_at(self._start() + place, length)

    def _named(self, text, tables):
        """Return the tables that a text names."""
        return [(name, one) for name, one in tables.items() if f"`{name}`" in text]

    def _catalog(self, text, tables):
        """Return a catalog of the tables that a text names, with all built-in functions."""
        from zetasql.wasi._pb2.zetasql.proto import simple_catalog_pb2
        from zetasql.wasi._pb2.zetasql.public import type_pb2

        kinds = {Type.STRING: "TYPE_STRING", Type.INTEGER: "TYPE_INT64", Type.FLOAT: "TYPE_DOUBLE",
                 Type.DATE: "TYPE_DATE", Type.TIMESTAMP: "TYPE_DATETIME", Type.BOOLEAN: "TYPE_BOOL"}  # fmt: skip
        catalog = simple_catalog_pb2.SimpleCatalogProto(name="here")
        catalog.builtin_function_options.language_options.CopyFrom(self._language)
        for name, (columns, _) in self._named(text, tables):
            table = catalog.table.add(name=name)
            for column, kind in columns.items():
                word = "TYPE_TIMESTAMP" if column == ZONED else kinds[kind]
                table.column.add(name=column).type.type_kind = getattr(type_pb2, word)
        return catalog


def _module():
    """Return the compiled module: once a version and machine, as it takes a minute."""
    import wasmtime

    config = wasmtime.Config()
    config.shared_memory = True
    engine = wasmtime.Engine(config)
    kept = Path(tempfile.gettempdir()) / f"zetasql-{version('zetasql')}-{version('wasmtime')}-{os.getuid()}.compiled"
    if kept.exists() and kept.stat().st_uid == os.getuid():
        return engine, wasmtime.Module.deserialize_file(engine, str(kept))
    source = Path(find_spec("zetasql").submodule_search_locations[0]) / "wasi" / "zetasql.wasm"
    module = wasmtime.Module.from_file(engine, str(source))
    made = kept.with_suffix(f".{os.getpid()}")
    made.write_bytes(module.serialize())
    made.rename(kept)
    return engine, module


def _language(service):
    """Return the options of the language as BigQuery has them: INT64 and FLOAT64, all features."""
    from zetasql.wasi._pb2.zetasql.local_service import local_service_pb2
    from zetasql.wasi._pb2.zetasql.proto import options_pb2
    from zetasql.wasi._pb2.zetasql.public import options_pb2 as public

    request = local_service_pb2.LanguageOptionsRequest(maximum_features=True)
    language = service.ask("GetLanguageOptions", request, options_pb2.LanguageOptionsProto)
    language.product_mode = public.PRODUCT_EXTERNAL
    nanos = public.FEATURE_TIMESTAMP_NANOS
    kept = [one for one in language.enabled_language_features if one != nanos]
    del language.enabled_language_features[:]
    language.enabled_language_features.extend(kept)
    return language


def _told(cell, value, kind, *, zoned):
    """Write a value into a cell; NULL is nothing."""
    if value is None:
        return
    match kind:
        case Type.STRING:
            cell.string_value = value
        case Type.INTEGER:
            cell.int64_value = value
        case Type.FLOAT:
            cell.double_value = value
        case Type.BOOLEAN:
            cell.bool_value = value
        case Type.DATE:
            cell.date_value = (value - EPOCH).days
        case Type.TIMESTAMP if zoned:
            cell.timestamp_value.FromDatetime(value)
        case _:
            clock = (value.hour << 12) | (value.minute << 6) | value.second
            cell.datetime_value.bit_field_datetime_seconds = (
                (value.year << 26) | (value.month << 22) | (value.day << 17) | clock
            )
            cell.datetime_value.nanos = value.microsecond * 1000


def _value(cell):
    """Return the value of a cell."""
    which = cell.WhichOneof("value")
    if which is None:
        return None
    if which == "date_value":
        return EPOCH + dt.timedelta(cell.date_value)
    if which == "datetime_value":
        told = cell.datetime_value
        bits = told.bit_field_datetime_seconds
        parts = [bits >> 26, (bits >> 22) & 15, (bits >> 17) & 31, (bits >> 12) & 31, (bits >> 6) & 63, bits & 63]
        return dt.datetime(*parts, told.nanos // 1000)  # noqa: DTZ001  # no zones
    return getattr(cell, which)
