"""The first rows of a stream: answers, files and settings before there is much to go by."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import figmn
from figmn import (
    IncrementalGaussianMixture,
    Mixture,
    MixtureClassifier,
    MixtureImputer,
    MixtureOutlierDetector,
    MixtureRegressor,
)
from figmn.estimators.class_conditional import ClassConditionalExpert
from figmn.stream.row_buffer import weight_after

SETTINGS = [{}, {"delta": 0.5}, {"beta": 0.1}, {"scale": 3.0}, {"half_life": 20.0}]


def growing(n_rows, n_features=2, seed=0):
    """Rows whose scale is not what the first ones show."""
    rows = np.random.default_rng(seed).normal(size=(n_rows, n_features))
    return rows * np.geomspace(1.0, 1e3, n_rows)[:, np.newaxis]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("n_rows", [5, 15, 40, 130])
def test_questions_leave_no_trace_in_a_mixture(settings, n_rows):
    rows = growing(n_rows)
    asked, silent = Mixture(2, **settings), Mixture(2, **settings)
    for row in rows:
        asked.learn_one(row)
        asked.log_density(row[np.newaxis])
        silent.learn_one(row)
    assert_array_equal(asked.means, silent.means)
    assert_array_equal(asked.covariances, silent.covariances)


@pytest.mark.parametrize("settings", [{}, {"half_life": 100.0}, {"delta": 0.5}])
@pytest.mark.parametrize("n_rows", [15, 60, 130])
def test_questions_leave_no_trace_in_a_classifier(settings, n_rows):
    rows, labels = growing(n_rows), np.arange(n_rows) % 2
    asked, silent = MixtureClassifier(**settings), MixtureClassifier(**settings)
    for t in range(n_rows):
        asked.partial_fit(rows[t : t + 1], labels[t : t + 1], classes=[0, 1])
        asked.predict_proba(rows[:1])
        silent.partial_fit(rows[t : t + 1], labels[t : t + 1], classes=[0, 1])
    assert_array_equal(asked.predict_proba(rows), silent.predict_proba(rows))


@pytest.mark.parametrize("settings", [{}, {"delta": 0.5}, {"half_life": 100.0}])
@pytest.mark.parametrize(
    "kind",
    [
        IncrementalGaussianMixture,
        MixtureClassifier,
        MixtureImputer,
        MixtureOutlierDetector,
        MixtureRegressor,
    ],
)
def test_a_file_from_the_warm_up_goes_on_bit_for_bit(kind, settings, tmp_path):
    rows = growing(130, 3)
    targets = (np.arange(130) % 2,) if kind in (MixtureClassifier, MixtureRegressor) else ()
    model = kind(**settings).partial_fit(rows[:50], *(y[:50] for y in targets))
    model.save(tmp_path / "model")
    loaded = figmn.load(tmp_path / "model")
    answer = {MixtureClassifier: "predict_proba", MixtureImputer: "transform"}.get(kind, "predict")
    gappy = np.where(rows > 1.0, np.nan, rows)
    for part in (slice(50, 60), slice(60, 130)):
        assert_array_equal(getattr(loaded, answer)(gappy), getattr(model, answer)(gappy))
        for each in (model, loaded):
            each.partial_fit(rows[part], *(y[part] for y in targets))
    assert_array_equal(getattr(loaded, answer)(gappy), getattr(model, answer)(gappy))


def test_settings_given_up_before_the_first_row(tmp_path):
    rows = np.random.default_rng(0).normal(size=(300, 2)) * 3.0
    mixture = Mixture(2, scale=1.0, delta=1.0, beta=0.1).reconfigure(delta="auto", beta="auto")
    mixture.learn(rows[:150]).save(tmp_path / "model")
    loaded = figmn.load(tmp_path / "model").learn(rows[150:])
    mixture.learn(rows[150:])
    fresh = Mixture(2, scale=1.0).learn(rows)
    assert_array_equal(loaded.means, mixture.means)
    assert_array_equal(fresh.means, mixture.means)


def test_a_shallow_copy_learns_for_itself():
    rows = growing(40)
    mixture = Mixture(2, delta=0.5).learn(rows)
    model = IncrementalGaussianMixture().partial_fit(rows)
    before = mixture.infer([[1.0]], [0]).mean(), model.score_samples(rows)
    copy.copy(mixture).learn(10.0 * rows)
    copy.copy(model).partial_fit(10.0 * rows)
    assert_array_equal(mixture.infer([[1.0]], [0]).mean(), before[0])
    assert_array_equal(model.score_samples(rows), before[1])


def test_rows_that_are_handed_out_are_copies():
    mixture = Mixture(2).learn(growing(40))
    before = mixture.means.copy()
    rows, weights = mixture.known_rows()
    rows[:], weights[:] = 99.0, 1e9
    assert_array_equal(mixture.copy().means, before)


def test_weight_after_each_row_is_exact_and_never_negative():
    weights = 10.0 ** np.random.default_rng(0).uniform(-30, 30, 200)
    after = weight_after(weights)
    exact = [float(sum(map(int, weights[t + 1 :] * 2.0**200))) / 2.0**200 for t in range(200)]
    np.testing.assert_allclose(after, exact, rtol=1e-12)
    assert after.min() >= 0.0


@pytest.mark.parametrize("half_life", [None, 10.0])
def test_a_class_of_which_nothing_is_known_is_as_probable_as_frequent(half_life):
    rows, labels = [[1.0], [2.0], [np.nan], [3.0]], [0, 0, 1, 0]
    model = MixtureClassifier(half_life=half_life).fit(rows, labels)
    proba = model.predict_proba([[1.5], [np.nan]])
    assert np.all(proba >= 0.0)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    settings = {"delta": 1.0, "beta": 0.1, "half_life": None}
    view = ClassConditionalExpert.new(1, 2, settings, np.ones(1))
    view.learn(np.array(rows), np.array(labels), np.ones(4))
    np.testing.assert_allclose(view.probabilities(np.array([[1.5], [np.nan]]))[:, 1], 0.25)
    with pytest.raises(ValueError, match="nothing to learn"):
        MixtureClassifier(half_life=10.0).fit([[np.nan], [np.nan]], [0, 1])


def test_heavy_rows_that_fade():
    rng = np.random.default_rng(1)
    rows, weights = rng.normal(size=(250, 3)), rng.random(250) * 1e20
    density = IncrementalGaussianMixture(half_life=10.0).fit(rows, sample_weight=weights)
    assert np.all(np.isfinite(density.score_samples(rows)))
    model = MixtureClassifier(half_life=10.0)
    model.partial_fit(rows[:60], np.arange(60) % 2, sample_weight=weights[:60])
    np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_column_known_only_in_rows_that_have_faded_is_remembered(weighted):
    rows = np.random.default_rng(0).normal(size=(400, 2)) * [1.0, 5.0] + [0.0, 1000.0]
    rows[150:, 1] = np.nan
    if weighted:
        weights = np.where(np.arange(400) < 150, 1e-8, 1.0)
        mixture = Mixture(2).learn(rows, weights)
    else:
        mixture = Mixture(2, half_life=10.0).learn(rows)
    assert abs(mixture.fill([[0.0, np.nan]])[0, 1] - 1000.0) < 10.0
    assert mixture.log_density([[0.0, 1000.0]])[0] > -10.0


def test_rows_of_next_to_no_weight_change_nothing():
    rng = np.random.default_rng(0)
    rows, weights = rng.normal(size=(300, 2)), np.ones(300)
    rows[::7], weights[::7] = 1e50, 1e-30
    mixture = Mixture(2).learn(rows, weights)
    clean = Mixture(2).learn(rows[weights == 1.0])
    asked = rng.normal(size=(100, 2))
    difference = mixture.log_density(asked) - clean.log_density(asked)
    assert abs(difference.mean()) < 0.1


@pytest.mark.parametrize("n_rows", [5, 9, 33, 61, 97])
def test_a_tracking_classifier_in_its_first_rows_comes_back_whole(n_rows, tmp_path):
    rows = np.random.default_rng(0).normal(size=(150, 3))
    labels = (rows[:, 0] > 0.0).astype(int) + (rows[:, 1] > 1.0)
    model = MixtureClassifier(half_life=7.0)
    for t in range(n_rows):
        model.partial_fit(rows[t : t + 1], labels[t : t + 1], classes=[0, 1, 2])
        model.predict(rows[:1])
    model.save(tmp_path / "model")
    loaded = figmn.load(tmp_path / "model")
    assert_array_equal(loaded.predict_proba(rows), model.predict_proba(rows))


def test_merging_in_the_warm_up_keeps_the_moments_of_all_rows():
    rows = np.random.default_rng(0).normal(size=(180, 2))
    mixture = Mixture(2, delta=0.5, warmup=300).learn(rows).merge(0, 1)
    weight, mean, variance = mixture.core.components().moments
    np.testing.assert_allclose(weight, 180.0)
    np.testing.assert_allclose(mean, rows.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(variance, rows.var(axis=0), rtol=1e-12)


def test_a_detector_from_before_it_noted_its_contamination_goes_on():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    detector = MixtureOutlierDetector(contamination=0.1).fit(rows)
    del detector._heeded
    offset = detector.offset_
    assert detector.partial_fit(rows).offset_ == offset
