"""The closed forms of tables: the published figures, and every one computed in a second way."""

from itertools import combinations, product

import numpy as np
import pytest
from work import calls_of

from farthing.errors import InvalidOption
from farthing.limits import bracket_2, bracket_f, marginals, marginals_error
from farthing.limits.tables import CLOSE, Residuals, tables_of

ADULT = (100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2)
SMALL = (100, 50, 7, 4, 2)
FIGURES = {
    (ADULT, 1, False): 3.047,
    (ADULT, 2, False): 6.359,
    (ADULT, 3, False): 10.515,
    (ADULT, 3, True): 10.665,
    (SMALL, 1, False): 1.744,
    (SMALL, 2, False): 2.035,
    (SMALL, 3, False): 2.048,
    (SMALL, 3, True): 2.276,
}


def matrix(basis):
    """Return the workload as rows of 0 and 1 over the cells of all columns."""
    cells = list(product(*map(range, basis.sizes)))
    return np.array(
        [
            [float(tuple(cell[i] for i in table) == key) for cell in cells]
            for table in basis.tables
            for key in product(*(range(basis.sizes[i]) for i in table))
        ]
    )


@pytest.mark.parametrize(("sizes", "ways", "up_to"), FIGURES)
def test_the_published_figures(sizes, ways, up_to):
    """Root mean squared errors per cell at mu = 1, for a domain of 6e17 cells and one of 280,000."""
    assert f"{FIGURES[sizes, ways, up_to]:.3f}" == f"{marginals_error(sizes, ways, up_to=up_to):.3f}"


@pytest.mark.parametrize("sizes", [(2, 3, 4), (2, 2, 2, 2), (5, 1, 3), (7, 4, 4)])
@pytest.mark.parametrize("ways", [0, 1, 2, 3])
def test_least_squares_are_the_factorization_norm(sizes, ways):
    """The sum over residuals is gamma_f squared, which another module computes by eigenvalues."""
    basis = tables_of(sizes, ways, up_to=False)

    assert marginals(sizes, ways).gamma_f == pytest.approx(np.sqrt(basis.squares_at_least()), rel=1e-9)
    assert marginals_error(sizes, ways, mu=2) == pytest.approx(marginals_error(sizes, ways) / 2, rel=1e-12)


@pytest.mark.parametrize("tables", [((0,), (1, 2)), ((), (0, 1), (2,)), ((0, 1, 2), (1,))])
@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (1.0, 3.0, 0.2)])
def test_a_materialised_matrix_has_the_same_optimum(tables, weights):
    """No factorization of the matrix itself is better: neither for squares nor for the largest variance."""
    basis = Residuals((2, 3, 2), tables, weights[: len(tables)])
    W = matrix(basis) * np.repeat(basis.weights, basis.cells.astype(int))[:, None]
    shares, dual = basis.least_largest()
    largest = float((basis.counted * basis.variances(shares)).max())

    assert bracket_f(W, tolerance=1e-6).upper ** 2 == pytest.approx(basis.squares_at_least(), rel=1e-4)
    assert bracket_2(W, tolerance=1e-6).lower ** 2 <= largest * (1 + CLOSE)
    assert bracket_2(W, tolerance=1e-6).upper ** 2 == pytest.approx(largest, rel=1e-3)
    assert basis.squares_at_least(dual) <= largest <= basis.squares_at_least(dual) * (1 + 2 * CLOSE)


def test_the_variance_of_a_cell_is_that_of_the_matrix():
    """What `spread` says of cells is the diagonal of the covariance of a materialised mechanism."""
    basis = tables_of((2, 3, 4), 2, up_to=True)
    shares = np.linspace(1, 2, len(basis.subsets))
    covariance = np.zeros((24, 24))
    for subset, share, price in zip(basis.subsets, shares, basis.price, strict=True):
        flat = [np.eye(n) - 1 / n if i in subset else np.full((n, n), 1 / n) for i, n in enumerate((2, 3, 4))]
        part = np.kron(np.kron(*flat[:2]), flat[2])
        others = np.prod([n for i, n in enumerate((2, 3, 4)) if i not in subset])
        covariance += part * price / share / others
    W = matrix(basis)
    by_table = np.split(np.diag(W @ covariance @ W.T), np.cumsum(basis.cells.astype(int))[:-1])

    for variance, each in zip(basis.variances(shares), by_table, strict=True):
        assert each == pytest.approx(np.full(len(each), variance))


def test_no_shares_are_better_than_the_best():
    """Moving a little of mu^2 between residuals never lowers the sum of squares, nor the largest variance."""
    basis = tables_of((4, 3, 2), 2, up_to=False)
    squares, (largest, _) = basis.least_squares(), basis.least_largest()
    for one, other in combinations(range(len(basis.subsets)), 2):
        for shares, error in (
            (squares, lambda made: float(basis.cells @ basis.variances(made))),
            (largest, lambda made: float(basis.variances(made).max())),
        ):
            moved = shares.copy()
            step = min(moved[one], moved[other]) / 100
            moved[one], moved[other] = moved[one] + step, moved[other] - step
            assert error(moved) >= error(shares) * (1 - 2 * CLOSE)


def test_no_domain_is_materialised():
    """Planning a domain of 6e17 cells is a few thousand calls, some per subset of columns, none per cell."""
    assert calls_of(lambda: tables_of(ADULT, 3, up_to=True).least_largest()) < 200_000


def test_bad_input_is_refused():
    """Sizes and ways that are none, and more parts than can be planned."""
    for sizes, ways in (((), 1), ((2, 2), 3), ((2, 2), -1), ((2, 2), True), ((0, 2), 1), ((2.5,), 1), ((2,) * 60, 9)):
        with pytest.raises(InvalidOption):
            marginals_error(sizes, ways)
    with pytest.raises(InvalidOption):
        marginals_error((2, 2), 1, mu=0)
    with pytest.raises(InvalidOption, match="parts"):
        Residuals((2,) * 30, (tuple(range(30)),), (1.0,))
