"""What groups without rows pay that are measured by looks, and which groups are given up that would have been met.

Each question is asked of groups without rows, and of groups of many means and variances under a cap at which they would
just be met if noise were nought, and one a quarter larger: once as the code has it, and once more, with the very same
noise, by looks that give nobody up. *Given up* is the part of the groups that only the latter met; *met* is what it
met.

    python bench/accuracy/given_up.py [--groups N] [--only WORDS]
"""

from __future__ import annotations

import argparse
import contextlib
import functools
from dataclasses import dataclass
from typing import Any
from unittest import mock

import joint
import numpy as np
import pure_measures

from farthing.accuracy.joint_measures import JointMeasures
from farthing.accuracy.joint_state import JointState
from farthing.accuracy.laplace_looks import LaplaceLooks
from farthing.accuracy.laplace_state import LaplaceState
from farthing.accuracy.ratio_looks import RatioLooks

RELATIVE = (0.3, 0.2, 0.1)
CELLS = tuple((mean, part) for mean in (3.0, 20.0, 43.7, 62.5, 81.0, 95.0) for part in (0.05, 0.45, 0.9))
"""Mean, and the variance as a part of the largest one there is."""
TIMES = (1.0, 1.25)
ROWS, BETA, LOOKS = 10_000, 0.05, 420
BEYOND, BEFORE = 6.0, 16.0
"""How far beyond a cap, and before it, the jumps of a chain of noise are drawn, in logarithms of its level."""


@dataclass(frozen=True)
class Gauss:
    """Questions under a budget with Gaussian noise."""

    kind: str
    name = "mu"

    @property
    def statistics(self):
        """The answers."""
        return joint.KINDS[self.kind]

    def asked(self, relative, cap=2**50):
        """Return the question."""
        targets = ((relative, 0.0),) * len(self.statistics)
        return JointMeasures(self.statistics, targets, BETA, joint.PER_GRAIN, cap)

    def ran(self, relative, truth, groups, seed, cap=2**50):
        """Return which parts of the cap groups that are alike pay, and which are met."""
        question, bought = self.asked(relative, cap), np.zeros(groups, np.int64)
        noise = np.random.default_rng(seed).standard_normal((LOOKS, 3, groups))

        def measure(grains, places):
            fresh = noise[bought[places], :, places].T
            bought[places] += 1
            return truth[:, None] + fresh / np.sqrt(np.maximum(grains, 1) * np.array(joint.PER_GRAIN)[:, None])

        state = question.run(JointState.nothing(3, len(self.statistics), groups), measure)
        return state.paid / cap, state.met.all(axis=0)

    def just(self, relative, truth):
        """Return the grains at which a group would just be within its targets if noise were nought."""
        question = self.asked(relative)
        rule, ticks = question.looks(JointState.nothing(3, len(self.statistics), 1)), 1.0
        shape = rule.shape(truth[:, None], np.full((3, 1), 1 << 60))
        for _ in range(80):
            variances = 1 / (np.maximum(shape, 1e-100) * ticks * question.prices.worth)
            ticks *= float(np.clip(rule._excess(truth[:, None], variances)[0], 0.3, 3)) ** 2
        return ticks * shape.sum()


@dataclass(frozen=True)
class Pure:
    """The same under a pure budget."""

    kind: str
    name = "epsilon"

    def asked(self, relative, cap=pure_measures.ONE):
        """Return the question."""
        (found,) = (each for each in pure_measures.ASKED if each[0] == self.kind)
        return pure_measures.question(*found[1:], relative, beta=BETA, cap=cap)

    def ran(self, relative, truth, groups, seed, cap=pure_measures.ONE):
        """Return which parts of the cap groups that are alike pay, and which are met.

        A chain of Laplace noise moves by jumps, two in each factor of e of its level, each of the scale there.
        """
        question, rng = self.asked(relative, cap), np.random.default_rng(seed)
        lanes, top = len(question.unit), np.log(cap) + BEYOND
        many = rng.poisson(2 * (BEYOND + BEFORE), (lanes, groups, 1))
        levels = np.exp(rng.uniform(top - BEYOND - BEFORE, top, (lanes, groups, many.max())))
        levels = np.where(np.arange(many.max()) < many, levels, np.inf)
        jumps = rng.laplace(size=levels.shape) * pure_measures.ONE / levels
        unit, step = np.array(question.unit)[:, None], np.array(question.step)[:, None]

        def show(asked, places):
            noise = np.where(levels[:, places] >= asked[..., None], jumps[:, places], 0.0).sum(axis=2)
            return np.rint((truth[:lanes, None] + noise * unit) / step).astype(np.int64)

        state = question.run(LaplaceState.nothing(lanes, 1, groups), show, show)
        return state.paid / cap, question.told(state)[3].all(axis=0)

    def just(self, relative, truth):
        """Return the farthings at which a group would just be within its targets if noise were nought."""
        question = self.asked(relative, 1 << 50)
        rule, ticks = LaplaceLooks.of(question, question.least), 1e6
        for _ in range(80):
            wide = rule._wide(truth[: len(question.unit), None], rule._scales(np.array([ticks])))[0][0]
            ticks *= float(np.clip(wide if np.isfinite(wide) else 2, 0.5, 2))
        return ticks * sum(rule.parts)


def nobody(rule: Any, values: Any, ticks: Any, most: Any, *_: Any) -> Any:
    """Return that no group is given up, but at its cap."""
    return ticks >= most if isinstance(rule, LaplaceLooks) else np.zeros(values.shape[1], np.bool_)


def row(asked, relative, groups):
    """Print one row."""
    empty, _ = asked.ran(relative, np.zeros(3), 4 * groups, 5)
    lost, met = [], []
    for seed, (mean, part) in enumerate(CELLS):
        truth = np.array(joint.lanes(ROWS, mean, part * (joint.HALF**2 - (mean - joint.HALF) ** 2)))
        for times in TIMES:
            run = functools.partial(asked.ran, relative, truth, groups, seed, int(times * asked.just(relative, truth)))
            _, judged = run()
            with contextlib.ExitStack() as patches:
                for where, name in ((RatioLooks, "given_up"), (LaplaceLooks, "_hopeless")):
                    patches.enter_context(mock.patch.object(where, name, nobody))
                _, on = run()
            lost.append((on & ~judged).mean())
            met.append(on.mean())
    print(
        f"| {asked.name} | {asked.kind} | {relative:.0%} | {empty.mean():.3f} | {(empty > 0.9).mean():.3f} |"
        f" {np.mean(lost):.4f} ({max(lost):.4f}) | {np.mean(met):.3f} |", flush=True,
    )  # fmt: skip


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", type=int, default=1_000, help="of each mean and variance")
    parser.add_argument("--only", default="", help="rows that begin with these words, as 'epsilon mean 10%%'")
    options = parser.parse_args()
    print("| budget | answers | relative | without rows: of the cap | nearly all | given up (worst) | met |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    kinds = [*map(Gauss, joint.KINDS), *(Pure(name) for name, *_ in pure_measures.ASKED)]
    for asked in kinds:
        for relative in RELATIVE:
            if f"{asked.name} {asked.kind} {relative:.0%}".startswith(options.only):
                row(asked, relative, options.groups)


if __name__ == "__main__":
    main()
