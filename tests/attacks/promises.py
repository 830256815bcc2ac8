"""What farthing promises, in words, and the hand-written bugs of which each breaks that promise.

A test holds that every promise has a bug, that every bug is one of `mutants.MUTANTS`, and that no bug is left out.
"""

from __future__ import annotations

PROMISES: dict[str, tuple[str, ...]] = {
    "noise is of the size and the law that are charged for": (
        "half the sigma",
        "twice the rate of geometric noise",
        "half the noise of the asinh mechanism",
        "a choice of a quantile at twice its epsilon",
        "the threshold of keys lowered",
        "noise in floating point on top",
    ),
    "noise is fresh, secret, and of every number its own": (
        "a seed for the noise",
        "the same bits after a fork",
        "neighbouring groups share noise",
        "the finer noise of a chain drawn again",
    ),
    "no unit moves a measure by more than its bounds say": (
        "no clamp of values",
        "squares not re-centred by the engine",
        "NULL adds the lower clamp",
        "NaN adds the upper clamp",
        "max_groups forgotten by the engine",
        "max_groups forgotten in the price",
        "max_rows forgotten by the engine",
        "max_rows forgotten in sums",
        "max_rows forgotten in the sensitivity of counts",
        "max_rows forgotten in quantiles",
        "the smaller clamp as sensitivity",
        "every ledger has the same hash key",
    ),
    "a unit is in one part of a partition, whatever is joined": (
        "a unit counts in each of its parts",
        "the part of a unit chosen after joins",
        "parts at their minimum",
    ),
    "whatever a fit or a learner meets in the rows, it answers": (
        "a fit that has not converged fails",
        "one odd value refuses all rows",
    ),
    "data are read by total expressions alone, under a price above zero": (
        "arithmetic that can overflow",
        "a cast that can fail",
        "the engine's words in an error",
        "the first of several statements",
        "files open to the engine",
        "settings open to the engine",
        "rows read free of charge",
    ),
    "no line of a CSV changes how another is read": (
        "lines that are not records kept in a CSV",
        "quotes out of place kept in a CSV",
        "types of a CSV guessed from its lines",
        "dates of a CSV in whichever form fits",
    ),
    "data that change are another version, and charges add up": (
        "another file under the same version",
        "a file that changes while a session is open",
        "a question's version left out of its identity",
    ),
    "no odd row fails a scan, and no exact number can be read in an error or a callback": (
        "text inside of lists fails a scan",
        "exact numbers in the frames of an error",
        "exact numbers above a callback",
    ),
    "text that leaves commands no terminal and no spreadsheet": (
        "escape sequences printed as they are",
        "formulas in a CSV as they are",
    ),
    "sums of repeated values are exact to a step": (
        "rows on the coarse grid before they are added",
        "a total whose cells are not rounded to steps",
    ),
    "it is told how sure all answers of a question are together, whoever decides by looking": (
        "chances of a miss added up as if nobody looked",
        "earlier answers of a question forgotten",
        "every answer together at the whole chance of a miss",
        "every claim of a chain at the whole of beta",
    ),
    "an interval of a quantile holds its leaf to the last digit": (
        "the ends of a quantile's leaf as float64 rounds them",
    ),
    "an honest system is not called broken": ("membership believes the shares that it assumes",),
    "whole scores and the promise of a relative error hold to their last digit": (
        "scores rounded to floats",
        "a relative error that is tried at few sizes only",
    ),
    "no question fails by its own noise, in any range": ("the unit of the first look does not follow the range",),
    "what is measured after an ask that failed is kept": ("measurements after a failed ask thrown away",),
    "a sharper answer costs the difference, no more and no less": (
        "a sharper mean begun from nothing",
        "what a median holds charged again",
        "what a mean holds taken off its price twice",
        "a chain charged less than its last look",
        "levels of a bisection not charged",
    ),
    "what a released interval meets already is free, and no kind of target makes another more expensive": (
        "groups that their intervals answer asked again",
        "the tighter of an old and a new kind of target",
        "groups that waited held to the old constant",
    ),
    "a plan is made or refused with bounded work": (
        "a recursion for every small relative target",
        "any number of keys",
        "any number of constants",
    ),
    "of two who ask the same at once one is charged": ("two askers at once, both charged",),
    "no absurd value is told, and totals of estimates are right": (
        "rules made for any relative target",
        "the mean of looks told as estimate",
    ),
    "every target is planned or refused in words, and a wider one is not more expensive": (
        "distances that floats cannot square",
        "targets of any number of digits",
        "rules made for any relative target",
    ),
    "nothing is paid for groups that are known": (
        "stored groups left without tags",
        "a tag for the first group only",
        "the bits of the last group only",
        "what is sought hashed without its family",
        "stored questions that hold fewer groups left in, those that hold more left out",
    ),
    "nothing is paid for what is out of reach": (
        "hopeless questions paid",
        "a hopeless count said to be possible",
        "hopeless pairs of aggregates said to be possible",
    ),
    "an interrupt leaves nothing open": ("nothing closed on an error",),
    "failures drain no budget, and hold up their own table alone": (
        "a damaged table charged again and again",
        "failures of one table held against another",
        "interrupts counted as failures",
    ),
    "a ledger that went back or was changed by hand is noticed": (
        "the hash of the totals not checked",
        "the hash of a measurement not checked",
        "the witness not written",
        "the witness written before the commit",
    ),
    "the worst price is charged beforehand and never given back": (
        "charged after the answer",
        "a refund on error",
        "a failed ask refunded by the ledger",
        "settled below use",
    ),
    "the whole of what was drawn is in the price": (
        "the price of Gaussian noise in zCDP halved",
        "a mean charged for one of its measures",
        "several aggregates charged for the most expensive",
        "k choices charged as one",
        "k choices charged as one in a pure ledger",
        "the stop of a choice not charged",
        "the delta of a search not booked",
        "the delta of a choice not booked",
        "the search for keys not in the price",
        "a report on bounds free of charge",
        "chosen bounds not in the price that is told",
    ),
    "what is told of losses and of keys does not depend on exact counts": (
        "losses by group from the private counts",
        "keys from the data",
    ),
    "nothing is answered beyond the budget": (
        "the budget not asked",
        "the budget passed by rounding",
        "the delta of keys not asked",
    ),
    "an answer is reused for its own question alone": (
        "the predicate left out of a question's identity",
        "the aggregate left out of a question's identity",
    ),
    "a release of many tables is booked whole, and its noise is independent of its design": (
        "a residual that is not charged",
        "what a look stored counted again",
        "contrasts that are not orthogonal",
        "a strategy that is not charged",
        "a strategy priced by its shortest column",
        "sums of cells that lose a carry",
        "rows outside of all edges in the first bin",
        "the pilot's noise in the answer",
    ),
    "a model of the data costs what was charged first, and its errors are told with their noise": (
        "each pair of a tree at the price of all",
        "errors of many tables priced as of one",
        "the watch of online queries free of charge",
        "what noise hides left out of the report on synthetic rows",
    ),
    "arithmetic of several aggregates has the truth in its interval": (
        "bends left out of the interval of a formula",
        "the second part of a sum left out of an enclosure",
        "a formula that reads the lanes of its first part only",
        "a covariance whose products count at half of their range",
    ),
    "means under a pure budget hold at whatever look they stop, and pay for all that was shown": (
        "the pilot of a pure mean free of charge",
        "a pure mean charged for one of its lanes",
        "the quantile of one lane for a sum of several",
        "every rung of a pure mean at the whole of beta",
    ),
}
