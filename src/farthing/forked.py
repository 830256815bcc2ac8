"""What a forked child does with things of its parent's that it must not touch: it keeps them for ever.

A database handle that is closed in a child joins threads that are not there, or undoes what the parent is about to
write. Python destroys what nobody refers to, at exit as well; so there is one reference that is never given back.
"""

from __future__ import annotations

import ctypes


def abandon(thing: object) -> None:
    """Never destroy a thing in this process, not even when it ends.

    >>> abandon(object())
    """
    python = getattr(ctypes, "pythonapi", None)
    if python is not None:
        python.Py_IncRef(ctypes.py_object(thing))
