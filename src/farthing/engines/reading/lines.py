"""Lines of a CSV file: blocks of whole lines, without those that could not stand by themselves."""

from __future__ import annotations

import gzip
import re
import zlib
from typing import IO, TYPE_CHECKING, Final, cast

from farthing.errors import DataError
from farthing.query.reading import MAX_LINE, WESTERN

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

DAMAGED: Final = (OSError, EOFError, zlib.error)
"""What reading a file raises that is not whole, or may not be read."""

BLOCK: Final = 4 << 20
"""How many bytes are read at once."""

_LF, _CR, _NUL = 10, 13, 0
_WINDOWS: Final = {
    place: letter for place in range(0x80, 0xA0) if (letter := bytes([place]).decode("cp1252", "ignore"))
}
"""Where Windows-1252 differs from Latin-1; five bytes have no letter there and stay what they are in Latin-1."""

_ESCAPED: Final = re.compile(rb"\xed[\xa0-\xbf]")
"""What a byte that is not UTF-8 becomes when it is decoded as a lone surrogate and encoded again."""


def opened(path: str) -> IO[bytes]:
    """Return a file to read bytes from, unpacked where its name says that it is packed, after a byte order mark."""
    file = cast("IO[bytes]", gzip.open(path) if path.lower().endswith(".gz") else open(path, "rb"))  # noqa: SIM115, PTH123
    if file.read(3) != b"\xef\xbb\xbf":
        file.seek(0)
    return file


def damaged(path: object) -> DataError:
    """Return the error that a file, which its owner reads before any question, cannot be read to its end."""
    return DataError(
        "the file cannot be read to its end",
        rule="files of a table are whole and can be read; one that ends in .gz can be unpacked",
        got=path,
        next_step="check its permissions, and copy or write it again; gzip -t FILE tests a packed one",
    )


def header(path: str) -> bytes:
    """Return the first line of a file, with its end."""
    with opened(path) as file:
        return file.readline(MAX_LINE + 2)


def blocks(path: str) -> Iterator[bytes]:
    """Yield the lines after the first, in blocks of whole lines, each with its end.

    A line longer than `MAX_LINE` may come shortened, but still longer than that.
    """
    with opened(path) as file:
        while (first := file.readline(BLOCK)) and not first.endswith(b"\n"):
            pass
        rest = b""
        while chunk := file.read(BLOCK):
            data = rest + chunk
            end = data.rfind(b"\n") + 1
            yield data[:end]
            rest = data[end:][: MAX_LINE + 2]
        if rest:
            yield rest + b"\n"


def clean(data: bytes, quote: str, delimiter: str) -> bytes:
    r"""Return the lines of a block that are records by themselves, as far as bytes tell, in order.

    What is dropped: lines of more than `MAX_LINE` bytes, with a NUL, with a CR that ends no line, with bytes that are
    not UTF-8, or with quotes other than RFC 4180 has them, its line breaks inside quotes excepted.

    >>> clean(b'1,a\n2,"b\n3,"c"\n', '"', ",")
    b'1,a\n3,"c"\n'
    """
    data = _encoded(data)
    quoted = bool(quote) and quote.encode() in data
    if not quoted and not _suspect(data):
        return data
    import numpy as np

    line = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(line == _LF)
    starts = np.concatenate(([0], ends[:-1] + 1))
    bad = ends - starts > MAX_LINE
    carriage = np.flatnonzero(line == _CR)
    strange = [np.flatnonzero(line == _NUL), carriage[line[carriage + 1] != _LF]]
    strange += [np.array([found.start() for found in _ESCAPED.finditer(data)], np.int64)]
    if quoted:
        strange.append(_misquoted(line, ord(quote), ord(delimiter)))
    bad[np.searchsorted(ends, np.concatenate(strange))] = True
    return data if not bad.any() else line[np.repeat(~bad, ends - starts + 1)].tobytes()


def in_utf8(data: bytes, encoding: str) -> bytes:
    r"""Return a block in UTF-8. In every other encoding each byte is a letter by itself; lines end where they did.

    >>> in_utf8(b"K\xf6ln \x80\n", "windows-1252").decode()
    'Köln €\n'
    """
    if encoding == "utf-8" or data.isascii():
        return data
    if encoding == WESTERN:
        return data.decode("latin-1").translate(_WINDOWS).encode()
    return data.decode(encoding, "replace").encode()  # a byte that has no letter is one question mark


def _encoded(data: bytes) -> bytes:
    """Return a block whose bytes outside of UTF-8, if any, are marked as lone surrogates."""
    if data.isascii():
        return data
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape").encode("utf-8", "surrogatepass")
    return data


def _suspect(data: bytes) -> bool:
    """Return whether some line of a block without quotes may have to go."""
    if b"\0" in data or _ESCAPED.search(data) or data.count(b"\r") != data.count(b"\r\n"):
        return True
    start = 0
    while len(data) - start > MAX_LINE:
        found = data.rfind(b"\n", start, start + MAX_LINE + 1)
        if found < 0:
            return True
        start = found + 1
    return False


def _misquoted(line: NDArray[np.uint8], quote: int, delimiter: int) -> NDArray[np.int64]:
    """Return places in the lines whose quotes are out of place.

    In each line the quotes are counted from 1. An odd one opens: it stands at the start of the line, after a delimiter,
    or right after the even one that it is doubled with. An even one closes: a delimiter, the end of the line, or the
    other half of a doubled one follows. Their number is even.
    """
    import numpy as np

    places = np.flatnonzero((line == quote) | (line == _LF))
    is_quote = line[places] == quote
    count = np.cumsum(is_quote)
    before = np.maximum.accumulate(np.where(is_quote, 0, count))
    odd = (count - np.concatenate(([0], before[:-1]))) % 2 == 1
    previous = np.where(places > 0, line[places - 1], _LF)
    following = line[np.minimum(places + 1, len(line) - 1)]
    opens = (previous == delimiter) | (previous == _LF) | (previous == quote)
    closes = (following == delimiter) | (following == _LF) | (following == _CR) | (following == quote)
    wrong = np.where(is_quote, np.where(odd, ~opens, ~closes), odd)
    found: NDArray[np.int64] = places[wrong]
    return found
