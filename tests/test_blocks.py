"""Blocks of rows, low-rank components and matrix products, against the plain loop."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import product as every

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from figmn import Mixture
from figmn.engines import choice
from figmn.engines.blocks import block, block_engine
from figmn.engines.blocks.lowrank_kernel import cholesky, fold
from figmn.engines.blocks.root_order import move_last, reorder_root
from figmn.engines.responsibilities import normalised
from figmn.kernels.blas import add_product, solve_lower
from figmn.kernels.evaluation import likely, regress
from figmn.reference import IGMN
from figmn.stream import driver
from helpers import assert_equal_mixtures, assert_equal_models, clusters, reference_like


@pytest.fixture
def threshold(monkeypatch):
    """Set from how many variables on components are lazy."""
    return lambda n_features: monkeypatch.setattr(choice, "LEAST_BLOCK_FEATURES", n_features)


# -- Learning --------------------------------------------------------------------------


@pytest.mark.parametrize("n_features", [64, 128, 256])
def test_streams_in_many_dimensions_equal_the_reference(n_features, threshold):
    threshold(1)
    rows = clusters(150, n_features, seed=n_features)
    weights = np.random.default_rng(2).uniform(0.3, 2.0, len(rows))
    settings = {"scale": rows.std(axis=0), "delta": 0.4, "beta": 1e-6}
    mixture = Mixture(n_features, **settings).learn(rows, weights)
    assert mixture.n_components >= 3
    assert_equal_models(mixture, IGMN(**settings).learn(rows, weights))


@pytest.mark.parametrize("n_features", [64, 256])
def test_each_block_from_the_same_state(n_features, threshold):
    threshold(1)
    rows = clusters(260, n_features, seed=1)
    settings = {"delta": 0.4, "beta": 1e-6}
    scale = rows.std(axis=0)
    mixture = Mixture(n_features, scale=scale, **settings).learn(rows[:200])
    for start in range(200, 260, 20):
        reference = reference_like(mixture, scale, **settings)
        reference.learn(rows[start : start + 20])
        mixture.learn(rows[start : start + 20])
        assert_equal_models(mixture, reference)


@pytest.mark.parametrize("size", [1, 2, 7, 64, 1000])
@pytest.mark.parametrize("limit", [1, 5, 128])
def test_block_sizes_make_no_difference(size, limit, threshold, monkeypatch):
    n_features = 24
    rows = clusters(300, n_features, n_clusters=3)
    rows[250:] += 40.0  # components that appear in the middle of a block
    weights = np.random.default_rng(0).uniform(0.0, 2.0, 300) * (np.arange(300) % 9 > 0)
    settings = {"scale": rows.std(axis=0), "delta": 0.3, "beta": 1e-6}
    threshold(10**9)
    plain = Mixture(n_features, **settings).learn(rows, weights)
    threshold(1)
    monkeypatch.setattr(block_engine, "_BLOCK", size)
    monkeypatch.setattr(block, "_FOLD", limit)
    lazy = Mixture(n_features, **settings).learn(rows, weights)
    assert lazy.n_components > 3
    assert_equal_mixtures(lazy, plain)


@pytest.mark.parametrize("n_features", [3, 40])
def test_components_come_and_go_in_the_middle_of_blocks(n_features, threshold):
    rng = np.random.default_rng(5)
    rows = clusters(400, n_features, seed=5)
    rows[::20] += rng.normal(size=(20, n_features)) * 100.0
    settings = {
        "scale": np.full(n_features, 5.0),
        "beta": 1e-6,
        "prune_age": 90,
        "prune_mass": 3.0,
        "max_components": 9,
    }
    threshold(10**9)
    plain = Mixture(n_features, **settings)
    counts = {plain.learn(row[np.newaxis]).n_components for row in rows}
    assert max(counts) == 9
    assert plain.n_components < 9
    threshold(1)
    assert_equal_mixtures(Mixture(n_features, **settings).learn(rows), plain, rtol=1e-8)
    singly = Mixture(n_features, **settings)
    for row in rows:
        singly.learn_one(row)
    assert_equal_mixtures(singly, plain, rtol=1e-8)


@pytest.mark.parametrize("least", [1, 10**9])
def test_engines_hand_back_only_where_a_component_is_spurious(least, threshold, monkeypatch):
    rows = clusters(200, 6, seed=5)
    rows[::20] += 100.0 * np.random.default_rng(5).normal(size=(10, 6))
    rows[::3, 1] = np.nan
    removed = []

    def counted(components, rule, prune=driver.prune):
        before = components.n_components
        prune(components, rule)
        removed.append(before - components.n_components)

    monkeypatch.setattr(driver, "prune", counted)
    threshold(least)
    settings = {"scale": 5.0, "beta": 1e-6, "prune_age": 30, "prune_mass": 3.0}
    Mixture(6, **settings).learn(rows)
    assert len(removed) > 3
    assert min(removed) > 0


@pytest.mark.parametrize("factor", [0.2, 1.0, 3.0])
def test_rows_one_by_one_leave_no_component_out(factor, threshold):
    """Whether they overlap or not, and whatever a row weighs beside them."""
    rows = clusters(200, 20, n_clusters=4, spread=1.5)
    weights = np.clip(factor ** (np.arange(200.0) % 40), 1e-12, 1e12)
    settings = {"scale": 2.0, "beta": 1e-4, "max_components": 7}
    threshold(10**9)
    plain = Mixture(20, **settings).learn(rows, weights)
    assert plain.n_components > 3
    threshold(1)
    lazy = Mixture(20, **settings)
    for row, weight in zip(rows, weights, strict=True):
        lazy.learn_one(row, weight)
    assert_allclose(lazy.masses, plain.masses, rtol=1e-9)
    assert_allclose(lazy.means, plain.means, rtol=1e-9)
    assert_allclose(lazy.covariances, plain.covariances, rtol=1e-7, atol=1e-9)


def test_incomplete_and_astonishing_rows_between_complete_ones(threshold):
    n_features = 12
    rows = clusters(300, n_features)
    rows[50, 3] = rows[51, :4] = rows[180, 7] = np.nan
    rows[::40, 0] = np.nan
    rows[100] *= 1e7
    rows[200] *= 1e160 / np.abs(rows[200]).max() * 1e-10
    settings = {"max_components": 5, "delta": 0.4}  # the scale is found out on the way
    threshold(10**9)
    plain = Mixture(n_features, **settings).learn(rows)
    threshold(1)
    lazy = Mixture(n_features, **settings).learn(rows)
    assert_equal_mixtures(lazy, plain, rtol=1e-7)


@pytest.mark.parametrize("start", [1e-2, 1e-4, 1e-5])
def test_a_narrow_start_does_not_cost_digits(start, threshold):
    """Pending rows explain nearly all of a distance, which must not be a difference then."""
    threshold(1)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 200))
    mixture = Mixture(200, scale=start, beta=0.0).learn(rows)
    mean = rows.mean(axis=0)
    _, lengths, axes = np.linalg.svd(rows - mean)
    variances = np.full(200, start**2 / 60)
    variances[:3] += lengths[:3] ** 2 / 60
    queries = rng.normal(size=(10, 200))
    along = (np.vstack([queries, rows]) - mean) @ axes.T
    along[10:, 3:] = 0.0  # the rows themselves lie in the plane
    expected = np.sum(along**2 / variances, axis=1)
    ours = mixture.squared_distances(np.vstack([queries, rows]))[:, 0]
    assert_allclose(ours[:10], expected[:10], rtol=1e-5)
    assert_allclose(ours[10:], expected[10:], rtol=1e-5)


@pytest.mark.parametrize("factor", [1.5, 2.0, 3.0, 10.0])
def test_weights_that_grow_from_row_to_row(factor, threshold):
    # Each row outweighs all before it, so that little is left of inner products.
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(size=(4, 30)), np.tile(rng.normal(size=(2, 30)), (25, 1))])
    weights = np.append(np.ones(4), factor ** np.arange(50.0))
    threshold(10**9)
    plain = Mixture(30, scale=1.0, beta=0.0).learn(rows, weights)
    threshold(1)
    lazy = Mixture(30, scale=1.0, beta=0.0).learn(rows, weights)
    assert_allclose(lazy.means, plain.means, rtol=1e-9)
    assert_allclose(lazy.covariances, plain.covariances, rtol=1e-7, atol=1e-12)


def test_a_new_component_leaves_rows_alone_that_were_learnt(threshold):
    rng = np.random.default_rng(0)
    rows, weights = rng.normal(size=(11, 8)), np.ones(11)
    rows[10] += 50.0
    weights[10] = 1e152  # so narrow that the others are beyond all measure
    threshold(10**9)
    plain = Mixture(8, scale=3.0, delta=1.0, beta=0.1).learn(rows, weights)
    threshold(1)
    lazy = Mixture(8, scale=3.0, delta=1.0, beta=0.1).learn(rows, weights)
    assert_allclose(lazy.means, plain.means, rtol=1e-9)


@pytest.mark.parametrize("half_life", [1.0, 5.0, 50.0])
def test_forgetting_for_longer_than_numbers_reach(half_life, threshold):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(int(1500 * half_life), 4))
    settings = {"scale": 1.0, "half_life": half_life, "max_components": 1}
    threshold(10**9)
    plain = Mixture(4, **settings).learn(rows)
    threshold(1)
    lazy = Mixture(4, **settings).learn(rows)
    assert_allclose(lazy.means, plain.means, rtol=1e-9)
    assert_allclose(lazy.covariances, plain.covariances, rtol=1e-7, atol=1e-12)


def test_the_printed_rule_stays_on_the_plain_loop(threshold):
    rows = clusters(100, 6)
    threshold(1)
    printed = Mixture(6, update="paper", scale=5.0).learn(rows)
    threshold(10**9)
    assert_equal_mixtures(printed, Mixture(6, update="paper", scale=5.0).learn(rows), 0.0)
    threshold(1)
    mixture = Mixture(6, scale=5.0, delta=1.0, beta=0.1).learn(rows)
    covariances = mixture.covariances
    assert_allclose(mixture.reconfigure(update="paper").covariances, covariances, rtol=1e-12)
    mixture.learn(rows).reconfigure(update="exact").learn(rows)


def learn_and_evaluate(rows):
    return Mixture(rows.shape[1], scale=5.0, delta=1.0, beta=0.1).learn(rows).log_density(rows)


def test_many_mixtures_learn_in_many_threads():
    chunks = [clusters(200, 300, seed=seed) for seed in range(6)]
    singly = [learn_and_evaluate(rows) for rows in chunks]
    with ThreadPoolExecutor(6) as pool:
        together = pool.map(
            lambda rows: (
                Mixture(300, scale=5.0, delta=1.0, beta=0.1).learn(rows).log_density(rows)
            ),
            chunks,
        )
        for ours, truth in zip(together, singly, strict=True):
            assert_allclose(ours, truth, rtol=1e-10)


def test_young_components_hold_rows_not_matrices():
    n_features = 1000
    rng = np.random.default_rng(0)
    centers = np.repeat(rng.normal(size=(20, n_features)) * 100.0, 5, axis=0)
    mixture = Mixture(n_features, scale=3.0, beta=1e-6)
    mixture.learn(centers + rng.normal(size=centers.shape))
    assert mixture.n_components == 20
    _, arrays = mixture.to_state()
    # Five rows of each, and a few vectors; matrices would be 160 million bytes.
    assert sum(array.nbytes for array in arrays.values()) < 20 * 10 * n_features * 8


# -- Answers ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", [60, 900])
def test_inference_with_young_and_old_components(n_rows, threshold):
    rows = clusters(n_rows, 40, n_clusters=3, spread=3.0)
    settings = {"scale": 5.0, "beta": 1e-6}
    threshold(10**9)
    plain = Mixture(40, **settings).learn(rows)
    threshold(1)
    lazy = Mixture(40, **settings).learn(rows)
    rng = np.random.default_rng(0)
    order = rng.permutation(40)
    for known, wanted in (
        (range(39), [39]),
        ([i for i in range(40) if i != 7], [7]),
        ([i for i in range(40) if i not in (3, 30)], [30, 3]),
        (order[:37], order[37:]),
        (range(5), [20, 10]),
        (range(3, 40), [1]),
    ):
        queries = rows[:50, list(known)]
        ours = lazy.infer(queries, list(known), list(wanted))
        truth = plain.infer(queries, list(known), list(wanted))
        for part in ("weights", "means", "covariances"):
            expected = getattr(truth, part)
            atol = 1e-9 * np.abs(expected).max()
            assert_allclose(getattr(ours, part), expected, rtol=1e-9, atol=atol)


def test_gaps_before_young_and_old_components(threshold):
    rows = clusters(300, 30, n_clusters=3)
    settings = {"scale": 5.0, "beta": 1e-6}
    threshold(10**9)
    plain = Mixture(30, **settings).learn(rows[:60])
    threshold(1)
    lazy = Mixture(30, **settings).learn(rows[:60])
    assert 0 < sum(len(root) > 0 for root in lazy.core.components().roots) < lazy.n_components
    gaps = rows[60:110].copy()
    gaps[np.random.default_rng(0).random(gaps.shape) < 0.2] = np.nan
    gaps[0] = np.nan
    assert_allclose(lazy.log_density(gaps), plain.log_density(gaps), rtol=1e-9)
    assert_allclose(lazy.squared_distances(gaps), plain.squared_distances(gaps), rtol=1e-9)
    assert_allclose(lazy.fill(gaps), plain.fill(gaps), rtol=1e-9, atol=1e-9)
    wide, wider = plain.add_variables(4), lazy.add_variables(4)
    assert_equal_mixtures(wider, wide)
    more = np.hstack([rows[110:200], np.zeros((90, 4))])
    assert_equal_mixtures(wider.learn(more), wide.learn(more))


@pytest.mark.parametrize("n_rows", [40, 150, 1500])
def test_components_that_cannot_matter_are_ruled_out_without_a_difference(n_rows, threshold):
    """Young components, old ones, and old ones with rows pending."""
    threshold(1)
    rows = clusters(1500, 30, n_clusters=5, spread=1.0)
    mixture = Mixture(30, scale=2.0, beta=1e-6, max_components=6).learn(rows[:n_rows])
    for held in (
        mixture.core.components(),
        mixture.core.components().marginal(np.arange(29)),
    ):
        queries = rows[:, : held.n_features]
        posteriors = normalised(held.evaluated(queries)[1])
        assert posteriors.max(axis=1).min() < 0.9  # there is something to rule out, and in
        assert_allclose(normalised(held.log_joint(queries)), posteriors, atol=1e-12)
        assert_allclose(
            held.log_joint(queries).max(axis=1), held.evaluated(queries)[1].max(axis=1)
        )


@pytest.mark.parametrize("at", [1e9, 1e10, 1e100, 1e152])
@pytest.mark.parametrize("least", [1, 10**9])
def test_a_row_far_off_two_equal_components_belongs_to_both(at, least, threshold):
    threshold(least)
    mixture = Mixture.from_parameters([[0.0], [0.0]], [[[1.3]]] * 2, scale=[1.0])
    rows = at * np.random.default_rng(0).uniform(0.1, 1.0, size=(50, 1))
    assert_allclose(mixture.posteriors(rows), 0.5)


# -- Kernels ---------------------------------------------------------------------------


def strided(rng, n_rows, n_columns, turned):
    if turned:
        return rng.normal(size=(n_columns, n_rows + 3))[:, :n_rows].T
    return rng.normal(size=(n_rows, n_columns + 3))[:, :n_columns]


@pytest.mark.parametrize("turns", list(every([False, True], repeat=2)))
def test_products_in_place_are_those_of_numpy(turns):
    rng = np.random.default_rng(0)
    for m, k, n in every([0, 1, 2, 5], repeat=3):
        a, b = strided(rng, m, k, turns[0]), strided(rng, k, n, turns[1])
        c = rng.normal(size=(m + 2, n + 4))
        whole = c.copy()
        inner = c[1:-1, :n]
        expected = 0.7 * a @ b + 0.3 * inner
        add_product(0.7, a, b, 0.3, inner)
        assert_allclose(inner, expected, atol=1e-14)
        whole[1:-1, :n] = inner
        assert np.array_equal(c, whole)  # nothing else has changed
        tight = np.full((m, n), np.nan)
        add_product(1.0, np.ascontiguousarray(a), np.ascontiguousarray(b), 0.0, tight)
        assert_allclose(tight, a @ b, atol=1e-14)


def test_triangular_solves_and_cholesky_factors():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    matrix = root @ root.T + np.eye(6)
    factor = matrix.copy()
    cholesky(factor, 1.0)
    assert_allclose(factor, np.linalg.cholesky(matrix))
    values = rng.normal(size=(6, 9))[:, 2:7]
    expected = np.linalg.solve(factor, values)
    solve_lower(factor, values)
    assert_allclose(values, expected)


@pytest.mark.parametrize("n_features", [1, 5, 47, 48, 49, 150])
@pytest.mark.parametrize("n_rows", [1, 7, 60])
def test_folding_adds_rows_to_the_covariance(n_features, n_rows):
    rng = np.random.default_rng(0)
    root = np.tril(rng.normal(size=(n_features, n_features)) * 0.1) + np.eye(n_features)
    joining = rng.normal(size=(n_rows, n_features))
    inverse = np.linalg.inv(root)
    covariance = inverse @ (np.eye(n_features) + joining.T @ joining) @ inverse.T
    fold(root, joining)
    assert np.array_equal(root, np.tril(root))
    assert_allclose(root @ covariance @ root.T, np.eye(n_features), atol=1e-11)


@pytest.mark.parametrize("n_features", [1, 2, 9])
def test_a_variable_moves_to_the_end(n_features):
    rng = np.random.default_rng(0)
    for position in range(n_features):
        root = np.tril(rng.normal(size=(n_features, n_features)))
        np.fill_diagonal(root, rng.uniform(0.5, 2.0, n_features))
        order = np.append(np.delete(np.arange(n_features), position), position)
        precision = (root.T @ root)[np.ix_(order, order)]
        move_last(root, position)
        assert np.array_equal(root, np.tril(root))
        assert np.all(np.diagonal(root) > 0.0)
        assert_allclose(root.T @ root, precision, atol=1e-13)


@pytest.mark.parametrize("order", [[0, 1, 2], [18, 2, 5], [*range(1, 20), 0], [*range(18), 19]])
def test_roots_of_some_variables_in_any_order(order):
    rng = np.random.default_rng(0)
    root = np.tril(rng.normal(size=(20, 20)) * 0.3) + np.eye(20)
    covariance = np.linalg.inv(root.T @ root)[np.ix_(order, order)]
    reordered = reorder_root(root.copy(), np.array(order))
    assert_allclose(reordered @ covariance @ reordered.T, np.eye(len(order)), atol=1e-12)


def test_bounds_are_distances_in_one_variable():
    rng = np.random.default_rng(0)
    points, means = rng.normal(size=(20, 6)), 3.0 * rng.normal(size=(4, 6))
    variances = rng.uniform(0.1, 4.0, size=(4, 6))
    which, bounds = np.empty(20, dtype=np.int64), np.empty((4, 20))
    likely(points, means, variances, which, bounds)
    parts = (points - means[:, np.newaxis]) ** 2 / variances[:, np.newaxis]
    assert_allclose(bounds, parts.max(axis=2), rtol=1e-9)
    assert np.all(bounds < parts.max(axis=2))  # by more than rounding
    scores = norm.logpdf(points, means[:, np.newaxis], np.sqrt(variances)[:, np.newaxis])
    assert which.tolist() == scores.sum(axis=2).argmax(axis=0).tolist()


@pytest.mark.parametrize("n_wanted", [0, 1, 3, 4, 9])
@pytest.mark.parametrize("n_rows", [0, 1, 64, 150])
def test_regressions_on_deviations(n_wanted, n_rows):
    rng = np.random.default_rng(0)
    points, means = rng.normal(size=(n_rows, 6)), rng.normal(size=(4, 6))
    coefficients = rng.normal(size=(4, n_wanted, 6))
    out = np.full((n_rows, 4, n_wanted), np.nan)
    regress(points, means, coefficients, out)
    expected = np.einsum("kmi,nki->nkm", coefficients, points[:, np.newaxis] - means)
    assert_allclose(out, expected, atol=1e-12)
