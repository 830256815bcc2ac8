"""Addresses of servers: what is one, and what of it may be shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote, urlencode

if TYPE_CHECKING:
    from collections.abc import Mapping

SECRETS: Final = ("password", "sslpassword")
"""Settings of a server's driver that are passwords."""

_SHOWN: Final = ("schema", "host", "port", "sslmode", "target_session_attrs")
"""Settings that are known to hold no secret; others are not shown."""

_PARTS: Final = re.compile(
    r"(?:(?P<who>[^:/?#@]*)(?::[^/?#@]*)?@)?(?P<host>[^:/?#@]*(?::\d*)?(?:/[^:?#@]*)?)"
    r"(?P<settings>\?[^@]*)?(?P<table>#[^?#@]*)?"
)
"""An address behind its scheme, as far as it can be read in one way."""


def is_address(place: object) -> bool:
    """Return whether a table or a ledger is named by where its server is; no path has such a mark.

    >>> is_address("postgresql://me@host/city#trips"), is_address("data/trips.parquet")
    (True, False)
    """
    return isinstance(place, str) and "://" in place


def shown_address(address: str, settings: Mapping[str, object] | None = None) -> str:
    """Return an address without what could be a password, nor the settings after "?".

    Of one that could be read in two ways, because a password holds a mark of addresses, only the scheme is left.

    Args:
        address: the address.
        settings: settings that were taken from it already, of which those without secrets are shown.

    >>> shown_address("postgresql://me:secret@host/db?password=x#trips"), shown_address("spark://host:7077#trips")
    ('postgresql://me@host/db?...', 'spark://host:7077#trips')
    >>> shown_address("postgresql://me:se#cret@host/db#trips")
    'postgresql://...'
    >>> shown_address("postgresql://me:secret@host/db", {"password": "secret", "schema": "books"})
    'postgresql://me@host/db?schema=books'
    """
    scheme, _, rest = address.partition("://")
    parts = _PARTS.fullmatch(rest)
    if parts is None:
        return f"{scheme}://..."
    who = "" if parts["who"] is None else f"{parts['who']}@"
    end = parts["table"] or "" if parts["settings"] is None else "?..."
    told = urlencode({name: str(value) for name, value in (settings or {}).items() if name in _SHOWN}, quote_via=quote)
    return f"{scheme}://{who}{parts['host']}{end}" + (f"?{told}" if told else "")


def name_at(address: str) -> str:
    """Return the name of the table at an address: its last part.

    >>> name_at("postgresql://me@db.example.org/city#public.trips"), name_at("spark://local[2]#/data/trips.parquet")
    ('trips', 'trips')
    """
    table = unquote(address.rpartition("#")[2]).rstrip("/")
    return table.rpartition("/")[2].partition(".")[0] if "/" in table else table.rpartition(".")[2]


def paths_at(address: str) -> tuple[str, ...] | None:
    """Return patterns of the files on this machine that a table may be read from; None where its address does not tell.

    A path stands for itself. Behind the "#" of Spark are paths as Hadoop reads them, with alternatives in braces. A
    table of its catalog may be files anywhere, and so may what Python's patterns cannot say: only Spark can tell.

    >>> paths_at("spark://local[2]#/data/my%20trips"), paths_at("spark://local[2]#FILE://localhost/data/{a,b}.parquet")
    (('/data/my trips',), ('/data/a.parquet', '/data/b.parquet'))
    >>> paths_at("spark://h:7077#hdfs://h/trips"), paths_at("postgresql://me@h/city#trips"), paths_at("/data/#1")
    ((), (), ('/data/#1',))
    >>> paths_at("spark://h:7077#city.trips"), paths_at("spark://h:7077#/data/[^a].parquet")
    (None, None)
    """
    server, mark, table = address.rpartition("#")
    if not is_address(address) or not mark:
        return (address,)
    if server.lower().startswith("postgres"):
        return ()
    named = _LOCATED.fullmatch(unquote(table))
    if named is None or (named["scheme"] or "file").lower() in _ELSEWHERE:
        return None if named is None else ()
    told = (named["scheme"] or "file").lower() == "file" and (named["host"] or "").lower() in {"", "localhost"}
    return _alternatives(named["path"]) if told else None


_LOCATED: Final = re.compile(
    r"(?:(?P<scheme>[A-Za-z][\w+.-]*):(?=/)|(?![^/]*:))(?://(?P<host>[^/]*)(?=/))?(?P<path>.*/.*)", re.DOTALL
)
"""A path as Hadoop reads it: a scheme ends at a colon before the first slash, a host stands between two and the next.
"""

_ELSEWHERE: Final = frozenset(
    {"abfs", "abfss", "adl", "cosn", "gs", "hdfs", "obs", "oci", "oss", "s3", "s3a", "s3n"}
    | {"swebhdfs", "wasb", "wasbs", "webhdfs"}
)
"""Schemes of stores elsewhere: none of their files is on this machine."""

_MOST_ALTERNATIVES: Final = 12
"""So many commas in braces are expanded at most: some thousand patterns."""


def _alternatives(path: str) -> tuple[str, ...] | None:
    """Return the patterns without braces that a pattern of Hadoop stands for; None if they are none of Python's."""
    if path.count(",") > _MOST_ALTERNATIVES and "{" in path:
        return None
    made = [path]
    while any(_BRACES.search(each) for each in made):
        made = [each for one in made for each in _one_expanded(one)]
    odd = any(mark in _CLASS.sub("", each) for each in made for mark in "[]{}\\")
    return None if odd or _CLASS_OF_BRACES.search(path) else tuple(made)


_BRACES: Final = re.compile(r"\{([^{}]*)\}")
_CLASS: Final = re.compile(r"\[!?[\w. -]+\]")
_CLASS_OF_BRACES: Final = re.compile(r"\[[^\]]*[{}]")


def _one_expanded(pattern: str) -> list[str]:
    """Return what a pattern stands for by the first of its innermost braces."""
    found = _BRACES.search(pattern)
    if found is None:
        return [pattern]
    before, after = pattern[: found.start()], pattern[found.end() :]
    return [f"{before}{each}{after}" for each in found[1].split(",")]
