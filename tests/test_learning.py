"""Learning: chunks, weights, bounds, missing entries, the scale."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2

from figmn import Mixture
from figmn.engines.scale import moments_of, suggested_scale
from helpers import assert_sound, clusters, direct_log_density, random_mixture

# Everything here holds however the components are held.
pytestmark = pytest.mark.usefixtures("held")


def fingerprint(mixture):
    """All that was learnt, bit for bit."""
    parts = (mixture.means, mixture.covariances, mixture.log_determinants, mixture.masses)
    return b"".join(part.tobytes() for part in (*parts, mixture.ages))


def assert_same(ours, theirs, held):
    """Bit for bit in the plain loop; blocks of rows differ in rounding."""
    if held == "dense":
        assert fingerprint(ours) == fingerprint(theirs)
    assert ours.ages.tolist() == theirs.ages.tolist()
    assert_allclose(ours.masses, theirs.masses, rtol=1e-9)
    assert_allclose(ours.means, theirs.means, rtol=1e-9, atol=1e-9)
    assert_allclose(ours.covariances, theirs.covariances, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("scale", [None, 2.0])
@pytest.mark.parametrize("sizes", [[1], [7, 1, 64], [99, 1, 1], [400]])
def test_chunk_sizes_make_no_difference(scale, sizes, held):
    rows = clusters(400, 3)
    rows[::11, 1] = np.nan
    weights = np.random.default_rng(0).uniform(0.0, 2.0, 400)
    settings = {"scale": scale, "delta": 0.3, "prune_age": 50, "prune_mass": 2.0}
    whole = Mixture(3, **settings).learn(rows, weights)
    chunked = Mixture(3, **settings)
    start, turn = 0, 0
    while start < 400:
        size = sizes[turn % len(sizes)]
        chunked.learn(rows[start : start + size], weights[start : start + size])
        start, turn = start + size, turn + 1
    assert whole.n_components > 1
    assert_same(chunked, whole, held)


def test_one_by_one_equals_at_once(held):
    rows = clusters(300, 2)
    at_once, singly = Mixture(2, delta=1.0, beta=0.1).learn(rows), Mixture(2, delta=1.0, beta=0.1)
    for row in rows:
        singly.learn_one(row)
    assert_same(singly, at_once, held)


@pytest.mark.parametrize("n_features", [1, 4, 10])
@pytest.mark.parametrize("beta", [1e-300, 1e-20, 0.1, 0.9])
def test_novelty_is_the_chi_square_quantile(n_features, beta):
    threshold = np.sqrt(chi2.isf(beta, n_features))
    mixture = Mixture(n_features, scale=1.0, beta=beta).learn(np.zeros((1, n_features)))
    direction = np.ones(n_features) / np.sqrt(n_features)
    assert mixture.copy().learn_one(direction * threshold * 0.999).n_components == 1
    assert mixture.copy().learn_one(direction * threshold * 1.001).n_components == 2


def test_one_component_for_ever_without_beta():
    rows = clusters(200, 3, spread=1e6)
    assert Mixture(3, beta=0.0).learn(rows).n_components == 1


def test_weighted_rows_are_repeated_rows():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 3))
    counts = rng.integers(0, 4, 50)
    weighted = Mixture(3, scale=1.0, beta=0.0).learn(rows, counts)
    repeated = Mixture(3, scale=1.0, beta=0.0).learn(np.repeat(rows, counts, axis=0))
    assert_allclose(weighted.means, repeated.means, rtol=1e-12, atol=1e-14)
    assert_allclose(weighted.covariances, repeated.covariances, rtol=1e-11, atol=1e-14)
    assert_allclose(weighted.masses, repeated.masses)


def test_a_novel_row_at_the_bound_updates():
    bounded = Mixture(2, scale=1.0, max_components=2, delta=1.0, beta=0.1).learn(
        [[0.0, 0.0], [50.0, 0.0]]
    )
    bounded.learn_one([0.0, 90.0])
    assert bounded.n_components == 2
    assert_allclose(bounded.masses.sum(), 3.0)
    assert np.any(bounded.means[:, 1] > 1.0)


def test_pruning_removes_the_old_and_light_but_never_the_heaviest():
    rows = np.vstack(
        [np.zeros((1, 2)), [[99.0, 99.0]], np.random.default_rng(0).normal(size=(40, 2))]
    )
    kept = Mixture(2, scale=1.0, beta=1e-9).learn(rows)
    pruned = Mixture(2, scale=1.0, beta=1e-9, prune_age=20, prune_mass=3.0).learn(rows)
    assert kept.n_components == 2
    assert pruned.n_components == 1
    assert_allclose(pruned.means, kept.means[:1])
    light = Mixture(2, scale=1.0, beta=0.0, prune_age=1, prune_mass=1e6).learn(rows)
    assert light.n_components == 1
    two = np.array([[0.0]] * 40 + [[9.0]] * 2)
    kept = Mixture(1, scale=0.1, prune_mass=50.0, delta=1.0, beta=0.1).learn(two)
    assert_allclose(kept.means, [[0.0]])


def test_forgetting_weighs_rows_by_their_age():
    rng = np.random.default_rng(0)
    rows, weights = rng.normal(size=(300, 3)) + 5.0, rng.uniform(0.2, 2.0, 300)
    mixture = Mixture(3, scale=2.0, beta=0.0, half_life=40.0).learn(rows, weights)
    later = np.append(np.cumsum(weights[::-1])[::-1][1:], 0.0)
    left = weights * 0.5 ** (later / 40.0)
    mean = left @ rows / left.sum()
    initial = 4.0 * left[0] / max(weights[0], 1.0) / left.sum()
    covariance = np.cov(rows.T, aweights=left, ddof=0) + initial * np.eye(3)
    assert_allclose(mixture.masses, [left.sum()], rtol=1e-10)
    assert_allclose(mixture.means, [mean], rtol=1e-10)
    assert_allclose(mixture.covariances, [covariance], rtol=1e-9, atol=1e-12)
    # Weights and the half-life are in the same unit.
    scaled = Mixture(3, scale=2.0, beta=0.0, half_life=4000.0).learn(rows, weights * 100.0)
    assert_allclose(scaled.means, mixture.means, rtol=1e-10)


def test_what_a_stream_has_left_behind_fades_and_goes():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(3000, 2))
    rows = noise + np.repeat([0.0, 100.0, 300.0], 1000)[:, np.newaxis]
    keeping = Mixture(2, scale=3.0, beta=1e-6).learn(rows)
    forgetting = Mixture(2, scale=3.0, beta=1e-6, half_life=50.0).learn(rows)
    assert keeping.n_components == 3
    assert forgetting.n_components == 1
    assert_allclose(forgetting.means, [[300.0, 300.0]], atol=1.0)
    assert forgetting.log_density(rows[-20:]).mean() > keeping.log_density(rows[-20:]).mean()
    # An outlier goes too, once less than half of it is left.
    still = Mixture(2, scale=3.0, beta=1e-6, half_life=50.0)
    still.learn(np.vstack([noise[:500], [[99.0, 99.0]]]))
    assert still.n_components == 2
    assert still.copy().learn(noise[500:545]).n_components == 2
    assert still.learn(noise[500:560]).n_components == 1


def test_forgetting_for_ever_leaves_sound_models():
    rng = np.random.default_rng(0)
    mixture = Mixture(2, scale=1.0, beta=1e-6, half_life=0.5)
    for step in range(30):
        mixture.learn(rng.normal(size=(100, 2)) * 10.0 ** rng.integers(-3, 4) + step)
        assert_sound(mixture)
    assert mixture.masses.sum() < 4.0


def test_settings_are_fixed_but_for_reconfiguring():
    mixture = Mixture(1, scale=1.0, beta=0.0).learn([[0.0], [9.0]])
    with pytest.raises(AttributeError):
        mixture.settings.beta = 0.5
    assert mixture.reconfigure(beta=0.5).learn([[99.0]]).n_components == 2


def test_a_given_center_stands_in_for_what_was_never_seen():
    for scale in (None, 1.0):
        mixture = Mixture(2, center=[5.0, 6.0], scale=scale, delta=1.0, beta=0.1).learn(
            [[1.0, np.nan]]
        )
        assert_allclose(mixture.means, [[1.0, 6.0]])


def test_arrays_that_are_given_are_not_shared():
    scale = np.ones(2)
    mixture = Mixture(2, scale=scale, delta=1.0, beta=0.1)
    scale[:] = 100.0
    mixture.learn([[0.0, 0.0]])
    assert_allclose(mixture.covariances[0], np.eye(2))
    answer = mixture.infer([[0.0]], [0])
    answer.covariances[:] = 0.0
    assert mixture.infer([[0.0]], [0]).std() > 0.9


def test_masked_arrays_and_frames_with_na():
    pandas = pytest.importorskip("pandas")
    rows = np.array([[1.0, np.nan], [2.0, 3.0], [np.nan, 4.0]])
    masked = np.ma.masked_invalid(rows)
    frame = pandas.DataFrame(rows).convert_dtypes()
    plain = Mixture(2, delta=1.0, beta=0.1).learn(rows)
    for given in (masked, frame):
        assert fingerprint(Mixture(2, delta=1.0, beta=0.1).learn(given)) == fingerprint(plain)


# -- Missing entries -----------------------------------------------------------


def expected_update(mixture, row, weight):
    """One step of learning from an incomplete row, from the covariances directly."""
    known = np.flatnonzero(~np.isnan(row))
    missing = np.flatnonzero(np.isnan(row))
    log_joint = [
        direct_log_density(mixture_of_one(mixture, k), [row])[0] + np.log(mixture.weights[k])
        for k in range(mixture.n_components)
    ]
    posteriors = np.exp(log_joint - np.logaddexp.reduce(log_joint))
    for k, posterior in enumerate(posteriors):
        mean, covariance = mixture.means[k], mixture.covariances[k]
        gain = covariance[np.ix_(missing, known)] @ np.linalg.inv(covariance[np.ix_(known, known)])
        filled = row.copy()
        filled[missing] = mean[missing] + gain @ (row[known] - mean[known])
        uncertainty = np.zeros_like(covariance)
        uncertainty[np.ix_(missing, missing)] = (
            covariance[np.ix_(missing, missing)] - gain @ covariance[np.ix_(known, missing)]
        )
        mass = mixture.masses[k] + weight * posterior
        w = weight * posterior / mass
        e = filled - mean
        yield mean + w * e, (1 - w) * covariance + w * (1 - w) * np.outer(e, e) + w * uncertainty


def mixture_of_one(mixture, k):
    return Mixture.from_parameters(mixture.means[k : k + 1], mixture.covariances[k : k + 1])


@pytest.mark.parametrize("pattern", [[0], [4], [1, 3], [0, 1, 2, 3], [2, 3, 4]])
def test_incomplete_rows_are_learnt_as_em_would(pattern):
    mixture = random_mixture(3, 5, seed=1, beta=0.0)
    row = np.random.default_rng(2).normal(size=5)
    row[pattern] = np.nan
    truth = list(expected_update(mixture, row, 2.5))
    mixture.learn_one(row, 2.5)
    for k, (mean, covariance) in enumerate(truth):
        assert_allclose(mixture.means[k], mean, rtol=1e-10, atol=1e-12)
        assert_allclose(mixture.covariances[k], covariance, rtol=1e-9, atol=1e-11)
    log_dets = np.linalg.slogdet(mixture.covariances)[1]
    assert_allclose(mixture.log_determinants, log_dets, rtol=1e-10, atol=1e-10)


def test_rows_without_content_are_passed_over():
    mixture = Mixture(2, scale=1.0, delta=1.0, beta=0.1).learn([[0.0, 0.0], [0.1, 0.1]])
    before = fingerprint(mixture)
    mixture.learn([[np.nan, np.nan], [5.0, 5.0]], sample_weight=[1.0, 0.0])
    assert fingerprint(mixture) == before


def test_missing_entries_recover_the_moments():
    rng = np.random.default_rng(0)
    truth = np.array([[2.0, 1.2], [1.2, 1.0]])
    rows = rng.multivariate_normal([1.0, -1.0], truth, size=20000)
    rows[rng.random(20000) < 0.3, 1] = np.nan
    mixture = Mixture(2, beta=0.0).learn(rows)
    assert_allclose(mixture.means[0], [1.0, -1.0], atol=0.05)
    assert_allclose(mixture.covariances[0], truth, atol=0.08)


def test_a_novel_incomplete_row_starts_at_what_is_expected():
    mixture = random_mixture(2, 3, seed=4, beta=0.5)
    row = np.array([60.0, np.nan, np.nan])
    expected = mixture.fill([row])[0]
    mixture.learn_one(row)
    assert mixture.n_components == 3
    assert_allclose(mixture.means[-1], expected, rtol=1e-9)


# -- The scale -----------------------------------------------------------------


def test_moments_are_those_of_numpy():
    rng = np.random.default_rng(0)
    rows, weights = rng.normal(3.0, 2.0, (500, 4)), rng.uniform(0.1, 2.0, 500)
    mean = np.average(rows, axis=0, weights=weights)
    variance = np.average((rows - mean) ** 2, axis=0, weights=weights)
    moments = moments_of(rows, weights)
    assert_allclose(moments[1], mean, rtol=1e-12)
    assert_allclose(moments[2], variance, rtol=1e-12)
    rows[rng.random(rows.shape) < 0.2] = np.nan
    moments = moments_of(rows, np.ones(500))
    assert_allclose(moments[1], np.nanmean(rows, axis=0), rtol=1e-12)
    assert_allclose(moments[2], np.nanvar(rows, axis=0), rtol=1e-12)


@pytest.mark.parametrize(
    ("rows", "scale"),
    [
        ([[1.0, 7.0], [3.0, 7.0]], [1.0, 1.0]),  # constant: as the others
        ([[5.0, -2.0]], [5.0, 2.0]),  # one row: its magnitude
        ([[0.0, 0.0]], [1.0, 1.0]),
        ([[0.0, 4.0]], [4.0, 4.0]),
        ([[0.1, 0.0], [0.1, 2.0], [0.1, 2.0], [0.1, 0.0]], [1.0, 1.0]),
        ([[np.nan, 1.0], [np.nan, 3.0]], [1.0, 1.0]),
        ([[1e150, 1e-150], [-1e150, -1e-150]], [1e150, 1e-150]),
    ],
)
def test_every_column_gets_a_scale(rows, scale):
    moments = moments_of(np.array(rows), np.ones(len(rows)))
    assert_allclose(suggested_scale(moments), scale, rtol=1e-12)


def test_first_rows_are_learnt_at_the_scale_they_show():
    rows = clusters(60, 3)
    streamed = Mixture(3, delta=0.4).learn(rows)
    given = Mixture(3, delta=0.4, scale=rows.std(axis=0)).learn(rows)
    assert_allclose(streamed.means, given.means, rtol=1e-10)
    assert_allclose(streamed.covariances, given.covariances, rtol=1e-9, atol=1e-12)


def test_later_components_follow_the_running_scale():
    first = np.random.default_rng(0).normal(size=(100, 2))
    mixture = Mixture(2, beta=1e-6).learn(first)
    far = np.array([[1e4, 1e4]])
    mixture.learn(far)
    everything = np.vstack([first, far])
    assert_allclose(np.diag(mixture.covariances[-1]), everything.var(axis=0), rtol=1e-10)


@pytest.mark.parametrize("first", [1, 2, 50])
def test_answers_from_the_first_row_on(first):
    rows = clusters(first, 3)
    mixture = Mixture(3, delta=1.0, beta=0.1).learn(rows)
    assert_sound(mixture)
    assert np.all(np.isfinite(mixture.log_density(rows)))
    assert np.all(np.isfinite(mixture.infer(rows[:, :2], known=[0, 1]).covariance()))


def test_columns_of_all_scales_together():
    rng = np.random.default_rng(0)
    rows = clusters(3000, 3, spread=8.0)
    units = np.array([1e-150, 1.0, 1e150])
    plain, scaled = Mixture(3, delta=0.4), Mixture(3, delta=0.4)
    order = rng.permutation(3000)
    plain.learn(rows[order])
    scaled.learn(rows[order] * units)
    assert scaled.n_components == plain.n_components
    assert_allclose(scaled.means / units, plain.means, rtol=1e-9, atol=1e-9)
    assert_allclose(scaled.weights, plain.weights, rtol=1e-9)
    jacobian = np.log(units).sum()
    ours, theirs = scaled.log_density(rows * units), plain.log_density(rows)
    assert_allclose(ours + jacobian, theirs, rtol=1e-9)


def test_new_variables_are_columns_of_zeros_from_the_start():
    rows = clusters(150, 2, spread=500.0)
    wide = np.hstack([rows, np.zeros((150, 1))])
    scale = [*rows.std(axis=0), 0.5]
    grown = Mixture(2, scale=scale[:2], delta=0.05, beta=1e-6).learn(rows).add_variables(1, 0.5)
    always = Mixture(3, scale=scale, delta=0.05, beta=1e-6).learn(wide)
    assert grown.n_components == always.n_components > 1
    assert_allclose(grown.covariances, always.covariances, rtol=1e-9, atol=1e-12)
    assert_allclose(grown.log_determinants, always.log_determinants, rtol=1e-9)
    more = np.random.default_rng(1).normal(size=(50, 3))
    assert_allclose(grown.learn(more).means, always.learn(more).means, rtol=1e-9, atol=1e-12)


def test_learning_keeps_its_hands_off_the_input():
    rows = clusters(30, 2)
    before = rows.copy()
    mixture = Mixture(2, delta=1.0, beta=0.1).learn(rows)
    means = mixture.means
    rows[:] = 7.0
    assert np.array_equal(mixture.means, means)
    mixture.means[:] = 0.0
    assert np.array_equal(mixture.means, means)
    assert not np.array_equal(before, rows)
