"""Privacy losses, their conversions, budgets and filters: pure mathematics, exact inside."""

from farthing.privacy import roads  # noqa: F401  # it fills the map of conversions
from farthing.privacy.loss import Approx, BoundedRange, Gdp, Loss, Pure, Zcdp
from farthing.privacy.renyi import Rdp, Tcdp

__all__ = ["Approx", "BoundedRange", "Gdp", "Loss", "Pure", "Rdp", "Tcdp", "Zcdp"]
