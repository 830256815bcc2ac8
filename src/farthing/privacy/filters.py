"""When to say no: a filter lets losses through only while what they add up to stays within a total fixed in advance.

Ours are `PureFilter`, `ZcdpFilter` and `GdpFilter`, one for each currency of the books; `ResidueFilter`, where choices
pay by what is left; and `RenyiFilter`, at one order. The others are the filters of Rogers et al. 2023, by theorem, so
that their comparison can be rerun. All are frozen values with one face, `Filter`:
`can_spend` asks, `spend` returns the next state or refuses, `remaining` says what is left.
"""

from farthing.privacy.additive import (
    AdditiveFilter,
    Filter,
    GdpFilter,
    Priced,
    PureFilter,
    RenyiFilter,
    ZcdpFilter,
    filter_for,
    priced,
)
from farthing.privacy.ex_post import BrownianRun, ExPost
from farthing.privacy.residue import ResidueFilter
from farthing.privacy.rogers import (
    Remaining,
    RogersConcurrentFilter,
    RogersExPostFilter,
    RogersUnifiedFilter,
    RogersZcdpFilter,
)

__all__ = [
    "AdditiveFilter",
    "BrownianRun",
    "ExPost",
    "Filter",
    "GdpFilter",
    "Priced",
    "PureFilter",
    "Remaining",
    "RenyiFilter",
    "ResidueFilter",
    "RogersConcurrentFilter",
    "RogersExPostFilter",
    "RogersUnifiedFilter",
    "RogersZcdpFilter",
    "ZcdpFilter",
    "filter_for",
    "priced",
]
