"""The fast mixture equals the reference: step by step, and over whole streams."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from figmn import Mixture
from figmn.reference import IGMN
from helpers import assert_equal_models, clusters, reference_like

# Everything here holds however the components are held.
pytestmark = pytest.mark.usefixtures("held")

DIMENSIONS = [1, 2, 3, 5, 8, 13, 21, 34, 64]


@pytest.mark.parametrize("n_features", DIMENSIONS)
@pytest.mark.parametrize("update", ["exact", "paper"])
def test_each_step_from_the_same_state(n_features, update):
    rows = clusters(160, n_features, seed=n_features)
    weights = np.random.default_rng(1).uniform(0.3, 2.0, len(rows))
    scale = rows.std(axis=0)
    settings = {"delta": 0.4, "beta": 1e-6, "update": update}
    mixture = Mixture(n_features, scale=scale, **settings).learn(rows[:40], weights[:40])
    compared = 0
    for row, weight in zip(rows[40:], weights[40:], strict=True):
        reference = reference_like(mixture, scale, **settings)
        posteriors = reference.posteriors(row)
        assert_allclose(mixture.posteriors([row])[0], posteriors, rtol=1e-9, atol=1e-12)
        distances = reference.squared_distances(row)
        assert_allclose(mixture.squared_distances([row])[0], distances, rtol=1e-9)
        reference.learn_one(row, weight)
        mixture.learn_one(row, weight)
        if np.linalg.eigvalsh(reference.covariances).min() > 1e-3:
            assert_equal_models(mixture, reference)
            compared += 1
        # otherwise the printed rule has lost positive definiteness, and the
        # mixture has kept it by the exact one
    assert compared == 120 if update == "exact" else compared > 60


@pytest.mark.parametrize("n_features", DIMENSIONS)
def test_whole_streams(n_features):
    rows = clusters(400, n_features, seed=n_features)
    weights = np.random.default_rng(2).uniform(0.3, 2.0, len(rows))
    # Wide enough that components do not overlap: else rounding would decide.
    delta = 0.2 if n_features < 8 else 0.4
    settings = {"scale": rows.std(axis=0), "delta": delta, "beta": 1e-6}
    reference = IGMN(**settings).learn(rows, weights)
    mixture = Mixture(n_features, **settings).learn(rows, weights)
    assert mixture.n_components >= 3
    assert_equal_models(mixture, reference)


@pytest.mark.parametrize("n_features", [1, 2, 5, 16, 64])
def test_whole_streams_by_the_printed_rule(n_features):
    # Narrow data around one wide component: no point is far enough to make
    # the printed update indefinite.
    rng = np.random.default_rng(n_features)
    rows = rng.normal(size=(300, n_features))
    settings = {
        "scale": np.full(n_features, 2.0 * np.sqrt(n_features)),
        "beta": 0.0,
        "update": "paper",
    }
    reference = IGMN(**settings).learn(rows)
    assert np.linalg.eigvalsh(reference.covariances).min() > 0.0
    assert_equal_models(Mixture(n_features, **settings).learn(rows), reference)


def test_pruning_and_the_bound_follow_the_reference():
    rng = np.random.default_rng(5)
    rows = clusters(500, 3, seed=5)
    rows[::20] += rng.normal(size=(25, 3)) * 100.0
    settings = {
        "scale": np.full(3, 5.0),
        "delta": 0.5,
        "beta": 1e-6,
        "prune_age": 120,
        "prune_mass": 3.0,
        "max_components": 9,
    }
    reference = IGMN(**settings)
    mixture = Mixture(3, **settings)
    counts = set()
    for row in rows:
        reference.learn_one(row)
        mixture.learn_one(row)
        counts.add(len(reference.masses))
        assert mixture.n_components == len(reference.masses)
    assert max(counts) == 9
    assert len(reference.masses) < 9
    assert_equal_models(mixture, reference, rtol=1e-8)


@pytest.mark.parametrize("n_features", [1, 2, 5])
def test_reference_posteriors_are_those_of_scipy(n_features):
    from scipy.stats import multivariate_normal

    rows = clusters(100, n_features, seed=3)
    reference = IGMN(rows.std(axis=0), delta=0.4, beta=1e-6).learn(rows)
    densities = [
        mass * multivariate_normal(mean, covariance).pdf(rows[7])
        for mass, mean, covariance in zip(
            reference.masses, reference.means, reference.covariances, strict=True
        )
    ]
    assert_allclose(reference.posteriors(rows[7]), densities / np.sum(densities), 1e-9, 1e-15)
