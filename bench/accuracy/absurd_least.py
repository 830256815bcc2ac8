"""The least that any rule pays on a Laplace chain which tells counts within r and hardly ever tells an absurd one.

A rule sees the values that a chain shows, ever finer, and stops when it likes. At each truth it tells one within r of
it with probability 1 - beta; at a truth of zero it tells one of these sizes with a chance of ABSURD at most. Both are
weighed by prices (`chance_price`, `miss_price`) and added to what is paid: whatever these are, the least sum that
stopping can have, less what a rule that keeps both would be charged, is below what every such rule pays in the mean of
sizes. The least sum is found from the last look backwards, since what was shown before depends on what is shown now
by noise alone. `docs/proofs/accuracy.laplace_stop_rule.md`, "Absurd values", has the proof.

    python bench/accuracy/absurd_least.py
"""

from __future__ import annotations

import math

import numpy as np

ABSURD = 1e-7
DOUBLINGS = 31  # of sizes: what a ledger's chain has
CHANCE_PRICE = 9e6  # these two give the largest bounds; any others give bounds, too
MISS_PRICE = 23.0


class LeastOnChain:
    """Truths whose signals rise by `growth` from look to look and from size to size, on cells of shown values.

    Cells keep their values from look to look, and so move by whole cells in signals: staying is exact.
    """

    def __init__(self, relative, *, growth=1.02, cells=2, middle=0.1, top=45.0, least=1e-3, most=200.0):
        self._growth, self._cells, self._stays = growth, cells, growth**-2.0
        each = math.log(growth) / cells
        rising = middle * np.exp(each * np.arange(math.ceil(math.log(top / middle) / each) + 1))
        self.edges = np.concatenate([-rising[::-1], rising])
        self.centre, self.signals = len(rising) - 1, (self.edges[1:] + self.edges[:-1]) / 2
        low, high = self.edges[:-1, None], self.edges[1:, None]
        self._jumps = between(low - self.signals / growth, high - self.signals / growth)
        self._first, self._last = (math.floor(math.log(one) / math.log(growth)) for one in (least, most))
        truths = growth ** np.arange(self._first, self._last + 1.0)
        shown = between(self.edges[:-1] - truths[:, None], self.edges[1:] - truths[:, None])
        none = np.zeros((1, len(self.signals)))
        self._prices = np.concatenate([none, np.cumsum(truths[:, None] * shown, axis=0)])
        self._masses = np.concatenate([none, np.cumsum(shown, axis=0)])
        alike = math.floor(math.log((1 + relative) / (1 - relative)) / math.log(growth)) + 1
        self._told = (self._masses[alike:] - self._masses[:-alike]).max(axis=0)
        self.none = between(self.edges[:-1], self.edges[1:])

    def looks(self, sizes):
        """Give of each look, the last one first, what is paid and the mass in every cell, in the mean of sizes."""
        for high in range(self._last + sizes - 1, self._first - 1, -1):
            low = high - sizes + 1
            first, last = max(low, self._first) - self._first, min(high, self._last) - self._first + 1
            unseen = max(0, min(self._first - low, sizes))  # so far below the noise that they look like none
            mass = self._masses[last] - self._masses[first] + unseen * self.none
            yield (self._prices[last] - self._prices[first]) / sizes, mass / sizes

    def before(self, after):
        """Return the integrals over a look's cells of what each cell of the next look holds."""
        stay, m, c = np.zeros_like(after), self._cells, self.centre
        stay[c + 1 : -m], stay[m:c] = after[c + 1 + m :], after[: c - m]
        stay[c] = after[c - m : c + m + 1].sum()
        return self._stays * stay + (1 - self._stays) * (self._jumps @ after)

    def least(self, sizes, chance_price, miss_price, *, beta, rare):
        """Return a bound on epsilon times the size, in the mean of sizes, of every rule that keeps both promises."""
        total = None
        for paid, mass in self.looks(sizes):
            missed = np.maximum(mass - np.minimum(self._told / sizes, mass), 0.0)
            stop = paid + np.minimum(chance_price * self.none + miss_price * missed, miss_price * mass)
            if total is not None:
                go = self.before(total)
                go[-self._cells :] = np.inf  # shown values that large: every rule stops
                stop = np.minimum(stop, go)
            total = stop
        return total.sum() - chance_price * rare - miss_price * beta

    def line(self, sizes, boundary):
        """Return (epsilon times the size in the mean of sizes, the chance at none) of stopping at a signal."""
        paid = chance = np.zeros_like(self.none)
        stops = self.signals >= boundary
        for price, _ in self.looks(sizes):
            paid = np.where(stops, price, self.before(paid))
            chance = np.where(stops, self.none, self.before(chance))
        return float(paid.sum()), float(chance.sum())


def between(low, high):
    """Return the chance that Laplace noise of scale 1 lies between two numbers."""
    tails = (np.exp(-np.maximum(low, 0.0)) - np.exp(-np.maximum(high, 0.0))) / 2
    below = (np.exp(np.minimum(high, 0.0)) - np.exp(np.minimum(low, 0.0))) / 2
    return tails + below


def main():
    """Print the bounds, and what a constant line pays."""
    print("asked   beta  any rule on the chain   a line at 22.1   its chance at none")
    for beta in (0.05, 0.01):
        for relative in (0.2, 0.3, 0.5):
            chain = LeastOnChain(relative)
            sizes, one = round(DOUBLINGS * math.log(2) / math.log(1.02)), math.log(1 / beta) / relative
            least = chain.least(sizes, CHANCE_PRICE, MISS_PRICE, beta=beta, rare=ABSURD)
            paid, chance = chain.line(sizes, 22.1)
            print(f"  {relative:.1f}  {beta:5}  {least / one:21.2f}  {paid / one:15.2f}  {chance:19.1e}", flush=True)


if __name__ == "__main__":
    main()
