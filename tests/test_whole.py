"""A single component whose precision is held whole, against the plain loop and SciPy."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from figmn import Mixture, load
from figmn.engines import choice
from figmn.engines.blocks import block_engine, lowrank_components
from figmn.engines.blocks.single import SinglePrecision
from figmn.kernels.blas import multiply_symmetric, subtract_squares
from figmn.reference import IGMN
from helpers import assert_equal_mixtures, assert_equal_models


@pytest.fixture
def blockwise(monkeypatch):
    """Make mixtures learn by blocks, whatever their number of variables, or plainly."""

    def choose(yes=True):
        monkeypatch.setattr(choice, "LEAST_BLOCK_FEATURES", 1 if yes else 10**9)

    return choose


def correlated(n_rows, n_features, seed=0):
    rng = np.random.default_rng(seed)
    mixing = np.eye(n_features) + 0.5 * rng.normal(size=(n_features,) * 2) / n_features**0.5
    return rng.normal(size=(n_rows, n_features)) @ mixing + 5.0


def is_whole(mixture):
    return mixture.core.components().single is not None


def both(blockwise, rows, weights=None, whole=True, **settings):
    """A mixture that has learnt by blocks, in the end held whole or not, and a plain one."""
    blockwise()
    ours = Mixture(rows.shape[1], **settings).learn(rows, weights)
    assert is_whole(ours) == whole
    blockwise(False)
    return ours, Mixture(rows.shape[1], **settings).learn(rows, weights)


# -- Matrices --------------------------------------------------------------------------


@pytest.mark.parametrize("n_features", [1, 2, 7, 65])
@pytest.mark.parametrize("n_rows", [1, 3, 64])
def test_products_with_one_triangle_are_those_of_numpy(n_features, n_rows):
    rng = np.random.default_rng(0)
    rows, matrix = rng.normal(size=(n_rows, n_features)), rng.normal(size=(n_features, n_features))
    symmetric = np.tril(matrix) + np.tril(matrix, -1).T
    out = np.full(rows.shape, np.nan)
    multiply_symmetric(rows, matrix, out)
    assert_allclose(out, rows @ symmetric, atol=1e-12)
    changed = matrix.copy()
    subtract_squares(rows, changed)
    assert_allclose(np.tril(changed), np.tril(symmetric - rows.T @ rows), atol=1e-12)
    assert np.array_equal(np.triu(changed, 1), np.triu(matrix, 1))


@pytest.mark.parametrize("n_features", [1, 2, 40])
def test_a_root_goes_and_comes_back(n_features):
    rng = np.random.default_rng(1)
    root = np.tril(0.2 * rng.normal(size=(n_features, n_features)), -1)
    root[np.diag_indices(n_features)] = rng.uniform(0.5, 2.0, n_features)
    scales = 10.0 ** rng.uniform(-100, 100, n_features)
    root /= scales
    back = SinglePrecision(root, scales**2).root()
    assert np.array_equal(back, np.tril(back))
    assert_allclose(back * scales, root * scales, atol=1e-13)


# -- Learning --------------------------------------------------------------------------


@pytest.mark.parametrize("n_features", [1, 3, 40, 100])
@pytest.mark.parametrize("half_life", [None, 200.0])
def test_equal_to_the_plain_loop(n_features, half_life, blockwise):
    rows = correlated(1000, n_features)
    weights = np.random.default_rng(2).uniform(0.3, 2.0, len(rows))
    settings = {"scale": 1.0, "beta": 0.0, "half_life": half_life}
    ours, plain = both(blockwise, rows, weights, **settings)
    assert_equal_mixtures(ours, plain)


@pytest.mark.parametrize("n_features", [64, 256])
def test_equal_to_the_reference(n_features, blockwise):
    blockwise()
    rows = correlated(5 * n_features // 2, n_features)
    weights = np.random.default_rng(2).uniform(0.3, 2.0, len(rows))
    ours = Mixture(n_features, scale=2.0, beta=0.0).learn(rows, weights)
    assert is_whole(ours)
    assert_equal_models(ours, IGMN(np.full(n_features, 2.0), beta=0.0).learn(rows, weights))


def test_equal_to_the_batch_covariance(blockwise):
    blockwise()
    rows = correlated(5000, 30)
    mixture = Mixture(30, scale=1.0, beta=0.0).learn(rows)
    assert is_whole(mixture)
    covariance = np.cov(rows.T, bias=True) + np.eye(30) / 5000
    assert_allclose(mixture.covariances[0], covariance, rtol=1e-10, atol=1e-10)
    assert_allclose(mixture.precisions[0] @ covariance, np.eye(30), atol=1e-9)
    truth = multivariate_normal(rows.mean(axis=0), covariance).logpdf(rows[:50])
    assert_allclose(mixture.log_density(rows[:50]), truth, rtol=1e-9)


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
@pytest.mark.parametrize("chunk", [15, 50, 331])
def test_blocks_and_chunks_make_no_difference(size, chunk, blockwise, monkeypatch):
    rows = correlated(900, 20)
    _, plain = both(blockwise, rows, scale=1.0, beta=0.0)
    monkeypatch.setattr(block_engine, "_BLOCK", size)
    blockwise()
    ours = Mixture(20, scale=1.0, beta=0.0)
    for start in range(0, len(rows), chunk):
        ours.learn(rows[start : start + chunk])
    assert is_whole(ours) == (chunk >= lowrank_components._LEAST_ROWS)
    assert_equal_mixtures(ours, plain)


@pytest.mark.parametrize("further", [0.0, 30.0])
def test_a_novel_row_ends_it(further, blockwise):
    """The row starts a component, and those after it meet two of them."""
    rows = correlated(700, 12)
    rows[603] += 1e3
    rows[604:] += further * (np.arange(96) % 2)[:, np.newaxis]
    ours, plain = both(blockwise, rows, whole=False, scale=3.0, beta=1e-9)
    assert ours.n_components >= 2
    assert_equal_mixtures(ours, plain)


@pytest.mark.parametrize("settings", [{"scale": 1.0}, {"delta": 1.0}], ids=["given", "adaptive"])
@pytest.mark.parametrize("half_life", [None, 300.0])
@pytest.mark.parametrize("size", [1e6, 1e90, 1e150])
def test_rows_far_off_are_learnt_once(settings, half_life, size, blockwise):
    """Too far for a whole matrix, for a block, and for products of numbers."""
    rows = correlated(700, 12)
    rows[501] *= size / np.abs(rows[501]).max()
    settings |= {"beta": 0.0, "half_life": half_life}
    blockwise()
    assert is_whole(Mixture(12, **settings).learn(rows[:501]))
    ours, plain = both(blockwise, rows, whole=False, **settings)
    assert ours.n_learnt == plain.n_learnt
    assert_allclose(ours.masses, plain.masses, rtol=1e-12)
    assert_allclose(ours.means, plain.means, rtol=1e-9)
    assert_allclose(ours.covariances, plain.covariances, rtol=1e-7)


def test_gaps_are_learnt_as_ever(blockwise):
    rows = correlated(600, 12)
    rows[400, 3] = rows[500, :5] = np.nan
    ours, plain = both(blockwise, rows, whole=False, scale=1.0, beta=0.0)
    assert_equal_mixtures(ours, plain)


def test_variables_that_follow_from_each_other_keep_their_digits(blockwise):
    """First with room between them, then without, forgetting what was."""
    rows = correlated(1500, 10)
    rows[500:, 3] = rows[500:, 1] + 1e-5 * rows[500:, 3]
    settings = {"scale": 1.0, "beta": 0.0, "half_life": 30.0}
    blockwise()
    assert is_whole(Mixture(10, **settings).learn(rows[:500]))
    ours, plain = both(blockwise, rows, whole=False, **settings)
    assert_equal_mixtures(ours, plain, rtol=1e-8)


def test_what_is_forgotten_for_longer_than_numbers_reach(blockwise):
    rows = correlated(6000, 4)
    ours, plain = both(blockwise, rows, scale=1.0, beta=0.0, half_life=16.0)
    assert_allclose(ours.covariances, plain.covariances, rtol=1e-8)


@pytest.mark.parametrize("factor", [1.2, 1.3, 2.0, 4.0])
@pytest.mark.parametrize("least_unasked", [2, 10**9], ids=["whole", "root"])
def test_a_variable_that_grows_from_row_to_row(factor, least_unasked, blockwise, monkeypatch):
    """No row is far off beside the one before it, but the last is beside the first."""
    monkeypatch.setattr(lowrank_components, "_LEAST_UNASKED", least_unasked)
    rows = correlated(700, 20)
    rows[400:, 3] *= factor ** np.minimum(np.arange(300), 60)
    blockwise()
    ours = Mixture(20, scale=1.0, beta=0.0).learn(rows)
    blockwise(False)
    plain = Mixture(20, scale=1.0, beta=0.0).learn(rows)
    assert ours.n_components == 1
    assert np.isfinite(ours.log_density(rows)).all()
    assert_allclose(ours.means, plain.means, rtol=1e-9)
    if factor < 2.0:  # beyond, a variance lies at its floor
        assert_allclose(ours.covariances, plain.covariances, rtol=1e-7, atol=1e-7)
        assert_allclose(ours.log_density(rows), plain.log_density(rows), rtol=1e-6)


def test_a_constant_column_keeps_a_variance(blockwise):
    rows = correlated(3300, 6)
    rows[:, 2] = 3.0
    ours, plain = both(blockwise, rows, whole=False, scale=1.0, beta=0.0, half_life=3.0)
    assert ours.covariances[0, 2, 2] > 0.0
    gap = rows[-1].copy()
    gap[0] = np.nan
    for mixture in (ours, plain):
        mixture.learn(gap[np.newaxis])
    assert_allclose(ours.masses, plain.masses)
    density = ours.marginalize([2, 3]).log_density(rows[-1:, [2, 3]])
    assert_allclose(density, plain.marginalize([2, 3]).log_density(rows[-1:, [2, 3]]))


def test_large_scales_forgotten_fast(blockwise):
    blockwise()
    rows = 1e148 * np.random.default_rng(0).normal(size=(6000, 3))
    mixture = Mixture(3, scale=1e148, beta=0.0, half_life=10.0).learn(rows)
    assert np.isfinite(mixture.infer(rows[:5, :1], [0]).mean()).all()


# -- Questions and copies between rows ---------------------------------------------------


def test_questions_change_nothing_but_rounding(blockwise):
    rows = correlated(900, 16)
    ours, plain = both(blockwise, rows[:300], scale=1.0, beta=0.0)
    blockwise()
    first = ours.log_density(rows)
    assert not is_whole(ours)
    assert np.array_equal(ours.log_density(rows), first)
    ours.learn(rows[300:320])
    assert not is_whole(ours)  # too few rows since the question
    ours.learn(rows[320:])
    assert is_whole(ours)
    blockwise(False)
    assert_equal_mixtures(ours, plain.learn(rows[300:]))


@pytest.mark.parametrize(
    "way",
    [copy.deepcopy, lambda mixture: pickle.loads(pickle.dumps(mixture)), "file"],
    ids=["copy", "pickle", "file"],
)
def test_a_copy_learns_on_bit_for_bit(way, blockwise, tmp_path):
    blockwise()
    rows = correlated(900, 16)
    mixture = Mixture(16, scale=1.0, beta=0.0).learn(rows[:300])
    assert is_whole(mixture)
    if way == "file":
        mixture.save(tmp_path / "mixture")
        other = load(tmp_path / "mixture")
    else:
        other = way(mixture)
    for start in range(300, 900, 20):
        chunk = rows[start : start + 20]
        mixture.learn(chunk)
        other.learn(chunk)
    assert is_whole(mixture)
    for name in ("means", "precisions", "log_determinants"):
        assert np.array_equal(getattr(mixture, name), getattr(other, name)), name


def test_threads_that_ask_at_once_get_one_answer(blockwise):
    blockwise()
    rows = correlated(2000, 60)
    mixture = Mixture(60, scale=1.0, beta=0.0).learn(rows)
    truth = mixture.copy().log_density(rows)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: mixture.log_density(rows), range(16)))
    for answer in answers:
        assert_allclose(answer, truth, rtol=1e-12)
