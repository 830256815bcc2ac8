"""Privacy losses, their conversions, budgets and filters: pure mathematics, exact inside."""

from farthing.privacy.loss import BoundedRange, Gdp, Loss, Pure, Zcdp

__all__ = ["BoundedRange", "Gdp", "Loss", "Pure", "Zcdp"]
