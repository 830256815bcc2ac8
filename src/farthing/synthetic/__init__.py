"""Rows made of released numbers: models of a table, the rows they give, and what is known of their errors.

Nothing here reads data. Whatever looks random is a public function of a seed.
"""

from farthing.synthetic.cliques import CliqueModel
from farthing.synthetic.model import HistogramModel, RowModel, TreeModel
from farthing.synthetic.rows import SyntheticRows

__all__ = ["CliqueModel", "HistogramModel", "RowModel", "SyntheticRows", "TreeModel"]
