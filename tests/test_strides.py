"""Rows that are learnt together: the same as one by one, and only where that is sure."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import figmn
from figmn import Mixture
from figmn.engines.strides import stride_engine
from figmn.kernels.compiler import UNEXPLAINED
from figmn.reference import IGMN
from helpers import assert_sound, clusters, direct_log_density, reference_like


@pytest.fixture
def eager(monkeypatch):
    """Strides of any length, at every opportunity; the rows learnt by them are counted."""
    for name in ("_LEAST_ROWS", "_SHORTEST", "_SHORTEST_REST", "_LONGEST_REST"):
        monkeypatch.setattr(stride_engine, name, 16)
    return counted(monkeypatch)


@pytest.fixture
def strides(monkeypatch):
    """The rows learnt by each stride."""
    return counted(monkeypatch)


def counted(monkeypatch):
    lengths = []

    def stride(points, weights, start, *others):
        done, n_singly, n_needless = make_stride(points, weights, start, *others)
        lengths.append(done - start - n_singly)
        return done, n_singly, n_needless

    make_stride = stride_engine.stride
    monkeypatch.setattr(stride_engine, "stride", stride)
    return lengths


def learnt_singly(rows, weights=None, **settings):
    """A mixture that has learnt rows in chunks too small for strides."""
    mixture = Mixture(rows.shape[1], **settings)
    weights = np.ones(len(rows)) if weights is None else weights
    for start in range(0, len(rows), 15):
        mixture.learn(rows[start : start + 15], weights[start : start + 15])
    return mixture


def assert_alike(ours, theirs, rtol=1e-9):
    """The same components, relative to their own spread."""
    assert ours.ages.tolist() == theirs.ages.tolist()
    assert_allclose(ours.masses, theirs.masses, rtol=rtol)
    spread = np.sqrt(np.diagonal(theirs.covariances, axis1=1, axis2=2))
    assert_allclose(ours.means / spread, theirs.means / spread, rtol=rtol, atol=rtol)
    scales = spread[:, :, np.newaxis] * spread[:, np.newaxis]
    assert_allclose(ours.covariances / scales, theirs.covariances / scales, atol=rtol)
    assert_allclose(ours.precisions * scales, theirs.precisions * scales, rtol=rtol, atol=rtol)
    assert_allclose(ours.log_determinants, theirs.log_determinants, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("n_features", [1, 2, 3, 5, 8, 21, 70])
@pytest.mark.parametrize("weighted", [False, True])
def test_strides_are_the_same_as_row_by_row(n_features, weighted, strides):
    rows = clusters(4000, n_features, n_clusters=3, spread=200.0)
    weights = np.random.default_rng(1).uniform(0.2, 3.0, len(rows)) if weighted else None
    settings = {"scale": 5.0, "beta": 1e-30}
    ours = Mixture(n_features, **settings).learn(rows, weights)
    assert sum(strides) > 2000
    assert ours.n_components == 3
    assert_alike(ours, learnt_singly(rows, weights, **settings))


def test_strides_are_the_same_as_the_reference(eager):
    rows = clusters(600, 4, n_clusters=2, spread=60.0)
    ours = Mixture(4, scale=4.0, beta=1e-12).learn(rows)
    reference = IGMN(np.full(4, 4.0), beta=1e-12)
    reference.learn(rows)
    assert sum(eager) > 400
    assert_allclose(ours.means, reference.means, rtol=1e-9)
    assert_allclose(ours.covariances, reference.covariances, rtol=1e-9, atol=1e-9)
    assert_allclose(ours.masses, reference.masses, rtol=1e-12)


def test_one_component_has_the_moments_of_all_rows(strides):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20_000, 6)) @ rng.normal(size=(6, 6)) + 1e3
    weights = rng.uniform(0.5, 2.0, len(rows))
    ours = Mixture(6, scale=1.0, beta=0.0, delta=1.0).learn(rows, weights)
    assert sum(strides) > 15_000
    # The first row is the first mean, and the initial covariance has its weight, of one at most.
    mean = np.average(rows, axis=0, weights=weights)
    scatter = np.cov(rows.T, aweights=weights, ddof=0) * weights.sum()
    initial = np.eye(6) * min(weights[0], 1.0)
    assert_allclose(ours.means[0], mean, rtol=1e-12)
    assert_allclose(ours.covariances[0], (scatter + initial) / weights.sum(), rtol=1e-10)


def random_stream(seed):
    """Rows of clusters of any shape, distance and frequency, with what streams may hold."""
    rng = np.random.default_rng(seed)
    n_features, n_clusters = int(rng.choice([1, 2, 3, 5, 9])), int(rng.integers(1, 6))
    centers = rng.normal(size=(n_clusters, n_features)) * rng.choice([3.0, 8.0, 30.0])
    shapes = rng.normal(size=(n_clusters, n_features, n_features)) + 0.3 * np.eye(n_features)
    which = rng.choice(n_clusters, 400, p=rng.dirichlet(np.ones(n_clusters)))
    noise = rng.standard_t(rng.choice([3, 50]), size=(400, n_features))
    rows = centers[which] + np.einsum("nij,nj->ni", shapes[which], noise)
    rows = (rows + rng.choice([0.0, 1e5])) * rng.choice([1.0, 1e-140, 1e140])
    weights = rng.choice([np.ones(400), 10.0 ** rng.uniform(-2, 2, 400)])
    weights *= rng.choice([1.0, 1.0, 1e-150, 1e20])
    blemish = rng.integers(7)
    if blemish == 0:
        rows[rng.random(rows.shape) < 0.01] = np.nan
    elif blemish == 1:
        rows[:, 0] = rows[0, 0]
    elif blemish == 2:
        rows[:, 0] = 3.0 * rows[:, -1]
    elif blemish == 3:
        weights[rng.random(400) < 0.1] = 0.0
    elif blemish == 4:  # rows that are means
        unit = np.std(rows) + 1e-300
        rows = np.round(rows / unit) * unit
    return rows, weights, rng


@pytest.mark.parametrize("seed", range(60))
def test_strides_of_any_stream_are_the_same_as_row_by_row(seed, eager):
    rows, weights, rng = random_stream(seed)
    scale = 2.0 * np.nanstd(rows) + 1e-150
    settings = {"scale": rng.choice([scale, None]), "beta": rng.choice([0.0, 1e-9, 1e-3])}
    if rng.random() < 0.3:
        settings |= {"prune_age": 60, "prune_mass": 3.0}
    if rng.random() < 0.3:
        settings |= {"max_components": 3}
    ours = Mixture(rows.shape[1], **settings).learn(rows, weights)
    theirs = learnt_singly(rows, weights, **settings)
    assert_sound(ours)
    assert ours.n_components == theirs.n_components
    assert_alike(ours, theirs, rtol=1e-8)


def test_a_row_at_a_mean_may_still_be_shared(strides):
    apart = np.tile([[-1.0], [1.0]], (500, 1))
    rows = np.vstack([apart, np.full((400, 1), 4.5), np.tile([[0.0], [4.5]], (600, 1))])
    settings = {"scale": 1.0, "delta": 1.0, "beta": 1e-3}
    ours = Mixture(1, **settings).learn(rows)
    assert ours.n_components == 2
    assert_alike(ours, learnt_singly(rows, **settings))


@pytest.mark.parametrize(
    ("scale", "weight"), [(1.0, 1e-170), (1e-138, 1e-40), (1e138, 1e40), (1e120, 1e70)]
)
def test_weights_and_scales_may_be_extreme_together(scale, weight, strides):
    rows = scale * np.random.default_rng(0).normal(size=(1500, 2))
    weights = np.full(1500, weight)
    ours = Mixture(2, scale=scale, beta=0.0).learn(rows, weights)
    assert sum(strides) > 1000
    assert_alike(ours, learnt_singly(rows, weights, scale=scale, beta=0.0))


def test_no_variance_passes_its_floor_in_a_stride(eager):
    rng = np.random.default_rng(0)
    n_features, least = 100, np.sqrt(1.6e3 * UNEXPLAINED)
    rows = rng.normal(size=(900, n_features))
    rows[650:] = 0.0
    rows[650:, 0] = np.sqrt(30.0 * n_features) * rng.choice([-1.0, 1.0], 250)
    rows[:, -1] = rows[:, 0] + least * rng.normal(size=900)
    settings = {"scale": 1e-7, "delta": 1.0, "beta": 0.0}
    ours = Mixture(n_features, **settings).learn(rows)
    theirs = learnt_singly(rows, **settings)
    assert_allclose(ours.log_determinants, theirs.log_determinants, rtol=1e-6)


def test_a_component_at_its_floor_leaves_strides_to_others(strides):
    collinear = np.array([[1.0, 1.0 - 1e-12], [1.0 - 1e-12, 1.0]])
    means, covariances = [[0.0, 0.0], [500.0, 500.0]], [collinear, np.eye(2)]
    settings = {"mass": 2000.0, "scale": 5.0, "beta": 1e-30}
    ours, theirs = (Mixture.from_parameters(means, covariances, **settings) for _ in range(2))
    rows = np.random.default_rng(5).normal(size=(4000, 2))
    first, rest = rows[:1000] @ np.linalg.cholesky(collinear).T, 500.0 + rows[1000:]
    ours.learn(first)
    assert sum(strides) == 0
    ours.learn(rest)
    assert sum(strides) > 2000
    for chunk in np.split(np.vstack([first, rest]), 400):
        theirs.learn(chunk)
    assert_alike(ours, theirs)


def test_rows_too_heavy_for_a_stride_are_learnt_all_the_same(strides):
    rows = clusters(4000, 3, n_clusters=2, spread=200.0)
    weights = np.ones(len(rows))
    weights[1500::700] = 1e5
    settings = {"scale": 5.0, "beta": 1e-30}
    ours = Mixture(3, **settings).learn(rows, weights)
    assert sum(strides) > 1000
    assert_alike(ours, learnt_singly(rows, weights, **settings))


@pytest.mark.parametrize("distance", [6.0, 7.4, 7.6])
def test_many_rows_do_not_add_up_to_something_missing(distance, strides):
    rows = np.random.default_rng(0).normal(size=(100_000, 1)) * 0.05
    rows[50] = distance  # it has a component of its own, which others' rows hardly reach
    settings = {"scale": 1.0, "delta": 1.0, "beta": 1e-6}
    ours = Mixture(1, **settings).learn(rows)
    assert ours.n_components == 2
    assert distance < 7.0 or sum(strides) > 50_000
    theirs = Mixture(1, **settings)
    for start in range(0, len(rows), 499):
        theirs.learn(rows[start : start + 499])
    assert_alike(ours, theirs, rtol=1e-11)


def near_clusters(n_rows, n_features, apart):
    """Rows of three clusters: two near each other, which share rows, and one far away."""
    rng = np.random.default_rng(0)
    rows, which = rng.normal(size=(n_rows, n_features)), rng.integers(3, size=n_rows)
    rows[:, 0] += np.array([0.0, apart, 100.0])[which]
    return rows


@pytest.mark.parametrize("n_features", [1, 2, 5, 20])
@pytest.mark.parametrize("apart", [6.0, 8.0, 11.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_in_doubt_do_not_end_strides(n_features, apart, weighted, strides):
    rows = near_clusters(6000, n_features, apart)
    weights = np.random.default_rng(1).uniform(0.2, 3.0, len(rows)) if weighted else None
    settings = {"scale": 2.0, "beta": 1e-12, "max_components": 3}
    start = np.array([[0.0], [apart], [100.0]]) * np.eye(n_features)[0]
    ours, theirs = (
        Mixture.from_parameters(start, [np.eye(n_features)] * 3, mass=300.0, **settings)
        for _ in range(2)
    )
    ours.learn(rows, weights)
    assert 1000 < sum(strides) < 5900  # some of them, but not all
    assert len(strides) < 60
    for begin in range(0, len(rows), 400):
        part = slice(begin, begin + 400)
        theirs.learn(rows[part], None if weights is None else weights[part])
    assert_alike(ours, theirs)


@pytest.mark.parametrize("kind", ["growing", 1e-162, 1e-158, 1e150])
@pytest.mark.parametrize("n_features", [1, 2])
def test_weights_of_rows_in_doubt_may_be_extreme(kind, n_features, strides):
    rows = np.random.default_rng(0).normal(size=(20_000, n_features))
    rows[1::2, 0] += 8.0
    growing = np.minimum(1.015 ** np.maximum(np.arange(len(rows)) - 500.0, 0.0), 1e153)
    weights = growing if kind == "growing" else np.full(len(rows), kind)
    settings = {"scale": 1.0, "delta": 1.0, "beta": 1e-4, "max_components": 5}
    ours = Mixture(n_features, **settings).learn(rows, weights)
    assert strides
    assert_sound(ours)
    theirs = learnt_singly(rows, weights, **settings)
    assert_allclose(ours.masses, theirs.masses, rtol=1e-8)
    assert_allclose(ours.means, theirs.means, rtol=1e-6, atol=1e-6)


def test_rows_in_doubt_are_learnt_as_by_the_reference(eager):
    rows = near_clusters(500, 2, 7.0)
    start = np.array([[0.0, 0.0], [7.0, 0.0], [100.0, 0.0]])
    ours = Mixture.from_parameters(start, [np.eye(2)] * 3, mass=100.0, beta=1e-12)
    reference = reference_like(ours, np.ones(2), beta=1e-12)
    ours.learn(rows)
    reference.learn(rows)
    assert 100 < sum(eager) < 450
    assert ours.n_components == 3
    assert_allclose(ours.means, reference.means, rtol=1e-9, atol=1e-9)
    assert_allclose(ours.covariances, reference.covariances, rtol=1e-9, atol=1e-9)
    assert_allclose(ours.masses, reference.masses, rtol=1e-11)


@pytest.mark.parametrize("kind", ["novel", "incomplete", "of no weight"])
def test_a_row_in_doubt_is_learnt_by_itself(kind, strides):
    rows, weights = clusters(3000, 3, n_clusters=2, spread=80.0), np.ones(3000)
    if kind == "novel":
        rows[2000] = rows[:1000].mean(axis=0)
    elif kind == "incomplete":
        rows[2000, 1] = np.nan
    else:
        weights[2000] = 0.0
    settings = {"scale": 3.0, "beta": 1e-9}
    ours = Mixture(3, **settings).learn(rows, weights)
    assert sum(strides) > 1500
    assert ours.n_components == (3 if kind == "novel" else 2)
    assert_allclose(ours.masses.sum(), weights.sum())
    assert_alike(ours, learnt_singly(rows, weights, **settings))


def test_clusters_that_overlap_are_learnt_row_by_row(strides):
    rows = np.random.default_rng(0).normal(size=(4000, 2)) * [3.0, 1.0]
    ours = Mixture(2, scale=0.5, beta=0.05, max_components=8).learn(rows)
    assert ours.n_components == 8
    assert sum(strides) < 400
    assert_alike(ours, learnt_singly(rows, scale=0.5, beta=0.05, max_components=8))


@pytest.mark.parametrize(
    "settings", [{"update": "paper"}, {"half_life": 500.0}], ids=["printed rule", "forgetting"]
)
def test_other_rules_make_no_strides(settings, strides):
    rows = clusters(1500, 3, spread=60.0)
    ours = Mixture(3, scale=3.0, beta=1e-9, **settings).learn(rows)
    theirs = learnt_singly(rows, scale=3.0, beta=1e-9, **settings)
    assert not strides
    assert np.array_equal(ours.covariances, theirs.covariances)


def test_nothing_is_pruned_later_than_row_by_row(strides):
    rows = clusters(3000, 2, n_clusters=2, spread=80.0)
    rows[700] = 1e3, -1e3  # a component of its own, soon old and light
    settings = {"scale": 3.0, "beta": 1e-12, "prune_age": 900, "prune_mass": 3.0}
    for count in (1599, 1600, 1601, 1602, 3000):
        ours = Mixture(2, **settings).learn(rows[:count])
        theirs = learnt_singly(rows[:count], **settings)
        assert ours.n_components == theirs.n_components
        assert ours.ages.tolist() == theirs.ages.tolist()
    assert sum(strides) > 3000


def test_a_stream_may_begin_with_nothing(eager):
    rows = clusters(400, 2, n_clusters=2, spread=80.0)
    rows[:50] = np.nan
    weights = np.ones(400)
    weights[50:100] = 0.0
    ours = Mixture(2, scale=3.0, beta=1e-12).learn(rows, weights)
    assert sum(eager) > 200
    assert_alike(ours, learnt_singly(rows, weights, scale=3.0, beta=1e-12))


def test_densities_after_strides_are_those_of_the_covariances(strides):
    rows = clusters(4000, 4, n_clusters=3, spread=40.0)
    ours = Mixture(4, scale=3.0, beta=1e-12).learn(rows)
    assert sum(strides) > 2000
    assert_allclose(ours.log_density(rows[:50]), direct_log_density(ours, rows[:50]), rtol=1e-9)


def test_a_model_learns_on_after_strides_as_if_never_saved(tmp_path, strides):
    rows = clusters(4000, 3, n_clusters=3, spread=60.0)
    ours = Mixture(3, scale=3.0, beta=1e-12).learn(rows[:2000])
    ours.save(tmp_path / "model.figmn")
    loaded = figmn.load(tmp_path / "model.figmn")
    ours.learn(rows[2000:])
    loaded.learn(rows[2000:])
    assert sum(strides) > 2000
    assert np.array_equal(ours.means, loaded.means)
    assert np.array_equal(ours.precisions, loaded.precisions)
