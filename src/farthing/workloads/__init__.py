"""Workloads as values: which of many statistics are wanted at once, and how much each matters. Nothing is computed.

`marginals` are the tables over sets of columns, `prefixes` and `ranges` the counts below and between edges,
`conditions` those of rows that meet them, `matrix` any sums of cells. `+` is the union of workloads, `*` their
Kronecker product: every answer of one by every answer of the other. A number before one makes its errors count that
much.

>>> marginals(["sex", "age"], ways=1) + 2 * marginals(["sex", "age"], ways=2)
marginals (sex), (age); 2 x marginals (sex, age)
>>> marginals(["sex"], ways=1) * prefixes("age", [0, 18, 65, 120])
sex * prefixes of age
"""

from farthing.workloads.marginals import Marginals, marginals
from farthing.workloads.products import Products, conditions, matrix, prefixes, ranges

__all__ = ["Marginals", "Products", "conditions", "marginals", "matrix", "prefixes", "ranges"]
