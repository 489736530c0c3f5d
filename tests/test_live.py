"""Fits that are made while rows come in: the rows alone decide what they lead to."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import figmn
from figmn import (
    IncrementalGaussianMixture,
    Mixture,
    MixtureClassifier,
    MixtureImputer,
    MixtureOutlierDetector,
    MixtureRegressor,
)
from figmn.batch import climb, em, selection, slices
from figmn.stream.streaming import Review

ESTIMATORS = [
    IncrementalGaussianMixture,
    MixtureClassifier,
    MixtureImputer,
    MixtureOutlierDetector,
    MixtureRegressor,
]
WARMUP = 150


def changing(n_rows, seed=0, n_features=3):
    """Rows of clusters, of which others come later, and a class and a target for each."""
    rng = np.random.default_rng(seed)
    which = rng.integers(3, size=n_rows) + 3 * (np.arange(n_rows) > 0.6 * n_rows)
    centers = np.random.default_rng(5).normal(size=(6, n_features)) * 5.0
    rows = centers[which] + rng.normal(size=(n_rows, n_features))
    return rows, which % 3, rows[:, 0] ** 2 + rng.normal(size=n_rows)


def in_pieces(count, seed):
    """Stretches of rows of random lengths, so short that none is learnt by strides."""
    rng, start = np.random.default_rng(seed), 0
    while start < count:
        stop = start + int(rng.choice([1, 2, 15, 17, 80, 300]))
        yield slice(start, stop)
        start = stop


def state_of(model):
    """Everything learnt, as arrays by name."""
    return model.to_state()[1]


def assert_same_state(one, other):
    ours, theirs = state_of(one), state_of(other)
    assert set(ours) == set(theirs)
    for name, values in ours.items():
        assert_array_equal(values, theirs[name], err_msg=name)


def learnt(kind, data, pieces, *, asked_by=None):
    """An estimator that has learnt rows in pieces, with questions in between."""
    rows, classes, targets = data
    supervised = {MixtureClassifier: (classes,), MixtureRegressor: (targets,)}.get(kind, ())
    model = kind()
    for piece in pieces:
        known = {"classes": [0, 1, 2]} if kind is MixtureClassifier else {}
        model.partial_fit(rows[piece], *(values[piece] for values in supervised), **known)
        if asked_by is not None and asked_by.random() < 0.4:
            ask(model, rows[:3])
    return model


def ask(model, rows):
    """All answers of a model that are compared."""
    if isinstance(model, MixtureRegressor):
        return np.column_stack([model.predict(rows), model.predict_quantiles(rows)])
    question = {MixtureClassifier: "predict_proba", MixtureImputer: "transform"}
    return getattr(model, question.get(type(model), "score_samples"))(rows)


@pytest.mark.parametrize("seed", range(3))
def test_random_cuts_and_questions_make_no_difference_to_a_mixture(seed):
    """Across the warm-up, the fit that ends it, and a review that leads to another."""
    rows = changing(900, seed)[0]
    rng = np.random.default_rng(seed)
    models = [Mixture(3, warmup=WARMUP) for _ in range(3)]
    for asks, model in zip((0.0, 0.3, 1.0), models, strict=True):
        for piece in in_pieces(len(rows), rng.integers(2**31)):
            model.learn(rows[piece])
            if rng.random() < asks:
                model.log_density(rows[:2])
    assert_same_state(models[0], models[1])
    assert_same_state(models[0], models[2])


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_random_cuts_and_questions_make_no_difference_to_estimators(kind):
    data = changing(500)
    first = learnt(kind, data, in_pieces(500, 1))
    second = learnt(kind, data, in_pieces(500, 2), asked_by=np.random.default_rng(0))
    rows = data[0][:50]
    assert_array_equal(ask(first, rows), ask(second, rows))


def test_answers_on_the_way_do_not_depend_on_earlier_questions():
    rows = changing(260)[0]
    asked = Mixture(3)
    for n, row in enumerate(rows):
        asked.learn_one(row)
        answer = asked.log_density(rows[:4])
        if n % 23 == 0:
            silent = Mixture(3).learn(rows[: n + 1])
            assert_array_equal(silent.log_density(rows[:4]), answer)


def test_fits_far_apart_do_not_depend_on_when_they_are_made():
    """Components of a class are fitted seldom: hundreds of rows lie between two fits."""
    rows = changing(2000)[0]
    settings = {"shrinkage": 3.0, "warmup": 5000}
    followed, made_up_for = Mixture(3, **settings), Mixture(3, **settings)
    for part in np.split(rows, 200):
        followed.learn(part)
    for part in np.split(rows, 5):
        made_up_for.learn(part)
    assert_array_equal(followed.covariances, made_up_for.covariances)


def test_what_an_interrupt_breaks_off_is_done_again(monkeypatch):
    rows = changing(120)[0]
    whole, broken = Mixture(3).learn(rows[:70]), Mixture(3).learn(rows[:70])
    calls = []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 50:
            raise KeyboardInterrupt
        return em.maximised(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(climb, "maximised", interrupted)
        with pytest.raises(KeyboardInterrupt):
            broken.log_density(rows[:1])
    for row in rows[70:]:
        for model in (whole, broken):
            model.learn_one(row)
            model.log_density(rows[:1])
    assert len(calls) == 50
    assert_array_equal(broken.covariances, whole.covariances)


def through_a_file(model, folder):
    model.save(folder / "model")
    return figmn.load(folder / "model")


def through_pickle(model, folder):
    return pickle.loads(pickle.dumps(model))


def through_a_copy(model, folder):
    return copy.deepcopy(model)


@pytest.mark.parametrize("again", [through_a_file, through_pickle, through_a_copy])
def test_a_mixture_in_the_middle_of_a_fit_goes_on_bit_for_bit(again, tmp_path):
    rows = changing(900)[0]
    whole, moved = Mixture(3, warmup=WARMUP), Mixture(3, warmup=WARMUP)
    reviewed = False
    for n, row in enumerate(rows):
        whole.learn_one(row)
        moved.learn_one(row)
        going_on = isinstance(getattr(moved.core.phase, "review", None), Review)
        # In provisional fits, in the one that ends the warm-up, and in a review.
        if n in (17, 33, 100, WARMUP, WARMUP + 1, 400) or (going_on and not reviewed):
            reviewed |= going_on
            moved = again(moved, tmp_path)
            assert_array_equal(moved.log_density(rows[:5]), whole.log_density(rows[:5]))
    assert reviewed
    assert_same_state(moved, whole)


def test_a_fit_in_slices_is_the_fit():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 4)) + 4.0 * rng.integers(3, size=(300, 1))
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    whole = slices.finished(selection.fitted(rows, np.ones(300), selection.Preferences()))
    work, costs = selection.fitted(rows, np.ones(300), selection.Preferences()), []
    while True:
        try:
            costs.append(next(work))
        except StopIteration as stop:
            parts = stop.value
            break
    assert len(costs) > 100
    assert min(costs) > 0.0
    for ours, theirs in zip(parts.parameters, whole.parameters, strict=True):
        assert_array_equal(ours, theirs)


@pytest.mark.parametrize("n_features", [2, 36, 60, 100])
def test_no_slice_is_long(n_features):
    """By the number of its multiplications, whatever their number in all."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2048, n_features)) + 3.0 * rng.integers(4, size=(2048, 1))
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    batch = em.Batch(rows, np.ones(2048))
    shares = rng.dirichlet(np.ones(20), 2048)
    costs = list(em.converged(batch, shares, em.Prior(10.0), rounds=3))
    assert max(costs) <= 2.0 * slices.cost(slices.LARGEST)


@pytest.mark.parametrize("block", [1e3, 1e5])
def test_where_slices_end_makes_no_difference_but_to_rounding(block, monkeypatch):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(400, 5))
    shares = rng.dirichlet(np.ones(4), 400)
    whole = em.Batch(rows, np.ones(400))
    expected = em.maximised(whole.scatter(shares), em.Prior(1.0))
    joint = whole.log_joint(expected)
    monkeypatch.setattr(em, "LARGEST", block)
    parts = em.Batch(rows, np.ones(400))
    for ours, theirs in zip(parts.scatter(shares), whole.scatter(shares), strict=True):
        assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    assert_allclose(parts.log_joint(expected), joint, rtol=1e-12)


def test_rows_held_out_were_not_seen():
    """Components fitted to others do not know a row that is unlike all others."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 2))
    rows[7] = 50.0
    model = Mixture(2, shrinkage=1.0, parsimony=0.0).learn(rows).consolidate()
    held_out = model.core.held_out()
    assert sum(len(each.rows) for each in held_out) == 200
    for each in held_out:
        far = np.flatnonzero(each.rows[:, 0] > 40.0)
        if len(far):
            assert each.components.log_density(each.rows[far])[0] < -50.0
    assert model.log_density(rows[7:8])[0] > -20.0


def test_without_predictions_in_mind_nothing_is_held_out():
    rows = changing(100)[0]
    assert Mixture(3).learn(rows).core.held_out() == ()
