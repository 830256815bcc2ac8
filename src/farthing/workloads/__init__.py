"""Workloads as values: which of many statistics are wanted at once, and how much each matters. Nothing is computed.

`marginals` are the tables over sets of columns. `+` is the union of workloads, a number before one makes its errors
count that much.

>>> marginals(["sex", "age"], ways=1) + 2 * marginals(["sex", "age"], ways=2)
marginals (sex), (age); 2 x marginals (sex, age)
"""

from farthing.workloads.marginals import Marginals, marginals

__all__ = ["Marginals", "marginals"]
