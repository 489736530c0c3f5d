"""Bad input gives an error that names cause and remedy, and changes nothing."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from figmn import (
    IncrementalGaussianMixture,
    Mixture,
    MixtureClassifier,
    MixtureImputer,
    MixtureOutlierDetector,
    MixtureRegressor,
)
from helpers import clusters, random_mixture

ROWS = clusters(60, 3)
LABELS = np.arange(60) % 2

BAD_ROWS = {
    "wide": (np.zeros((4, 5)), "5"),
    "narrow": (np.zeros((4, 2)), "2"),
    "one axis": (np.zeros(3), "shape|1D|2D"),
    "three axes": (np.zeros((2, 3, 3)), "shape|dim"),
    "infinity": (np.array([[0.0, np.inf, 1.0]]), "infinity"),
    "minus infinity": (np.array([[0.0, -np.inf, 1.0]]), "infinity"),
    "too large": (np.array([[0.0, 1e200, 1.0]]), "rescale"),
    "text": (np.array([["a", "b", "c"]]), "numbers|convert"),
    "objects": (np.array([[None, {}, []]], dtype=object), "numbers|float"),
    "complex": (np.ones((2, 3)) * 1j, "numbers|[Cc]omplex"),
}


def learnt(kind):
    return {
        "mixture": lambda: Mixture(3, delta=1.0, beta=0.1).learn(ROWS),
        "density": lambda: IncrementalGaussianMixture().fit(ROWS),
        "classifier": lambda: MixtureClassifier().partial_fit(ROWS, LABELS, classes=[0, 1]),
        "open classifier": lambda: MixtureClassifier().partial_fit(ROWS, LABELS),
        "regressor": lambda: MixtureRegressor().fit(ROWS, ROWS[:, 0]),
        "imputer": lambda: MixtureImputer().fit(ROWS),
        "detector": lambda: MixtureOutlierDetector().fit(ROWS),
    }[kind]()


KINDS = ["mixture", "density", "classifier", "open classifier", "regressor", "imputer", "detector"]


def everything(model):
    """The whole of a model, as bytes."""
    return pickle.dumps(model)


def learn(model, rows, **kwargs):
    if isinstance(model, Mixture):
        return model.learn(rows, **kwargs)
    if isinstance(model, MixtureClassifier):
        return model.partial_fit(rows, np.zeros(len(rows), dtype=int), **kwargs)
    if isinstance(model, MixtureRegressor):
        return model.partial_fit(rows, np.zeros(len(rows)), **kwargs)
    return model.partial_fit(rows, **kwargs)


@pytest.mark.parametrize("bad", BAD_ROWS)
@pytest.mark.parametrize("kind", KINDS)
def test_bad_rows_are_refused_and_nothing_changes(kind, bad):
    rows, match = BAD_ROWS[bad]
    model = learnt(kind)
    before = everything(model)
    with pytest.raises((ValueError, TypeError), match=match):
        learn(model, rows)
    assert everything(model) == before


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "mixture"])
def test_a_failed_fit_leaves_the_model_as_it_was(kind):
    pandas = pytest.importorskip("pandas")
    model = learnt(kind)
    before = everything(model)
    frame = pandas.DataFrame({"a": [1.0, np.inf], "b": [1.0, 2.0]})
    targets = [[0, 1]] if kind in ("classifier", "open classifier", "regressor") else []
    with pytest.raises(ValueError, match="infinity"):
        model.fit(frame, *targets)
    assert everything(model) == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("weights", "match"),
    [
        ([1.0], "one weight a row"),
        (-np.ones(60), "negative"),
        (np.full(60, np.nan), "NaN"),
        (np.full(60, np.inf), "too large"),
        (["a"] * 60, "numbers"),
    ],
)
def test_bad_weights_are_refused_and_nothing_changes(kind, weights, match):
    model = learnt(kind)
    before = everything(model)
    with pytest.raises(ValueError, match=match):
        learn(model, ROWS, sample_weight=weights)
    assert everything(model) == before


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "mixture"])
def test_empty_input_is_refused(kind):
    model = learnt(kind)
    before = everything(model)
    with pytest.raises(ValueError, match="0 sample"):
        learn(model, np.empty((0, 3)))
    assert everything(model) == before


def test_an_empty_chunk_teaches_a_mixture_nothing():
    mixture = learnt("mixture")
    before = everything(mixture)
    mixture.learn(np.empty((0, 3)))
    assert everything(mixture) == before
    assert mixture.log_density(np.empty((0, 3))).shape == (0,)
    assert mixture.infer(np.empty((0, 2)), [0, 1]).mean().shape == (0, 1)


def test_nothing_to_learn_from_is_refused():
    with pytest.raises(ValueError, match="nothing to learn"):
        IncrementalGaussianMixture().fit([[np.nan, np.nan]])
    with pytest.raises(ValueError, match="nothing to learn"):
        IncrementalGaussianMixture().fit(ROWS, sample_weight=np.zeros(60))


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("log_density", (ROWS,)),
        ("posteriors", (ROWS,)),
        ("squared_distances", (ROWS,)),
        ("assign", (ROWS,)),
        ("fill", (ROWS,)),
        ("log_tail", (ROWS,)),
        ("infer", (ROWS[:, :1], [0])),
        ("condition", (ROWS[0, :1], [0])),
        ("marginalize", ([0],)),
        ("sample", ()),
    ],
)
def test_an_unlearnt_mixture_says_so(method, arguments):
    with pytest.raises(NotFittedError, match="learn"):
        getattr(Mixture(3, delta=1.0, beta=0.1), method)(*arguments)


@pytest.mark.parametrize(
    "estimator",
    [
        IncrementalGaussianMixture(),
        MixtureClassifier(),
        MixtureRegressor(),
        MixtureOutlierDetector(),
    ],
)
def test_an_unfitted_estimator_says_so(estimator):
    with pytest.raises(NotFittedError, match="fit"):
        estimator.predict(ROWS)
    with pytest.raises(AttributeError):
        estimator.n_components_  # noqa: B018


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"n_features": 0}, "n_features"),
        ({"n_features": 2.5}, "n_features"),
        ({"delta": 0.0}, "delta"),
        ({"delta": "wide"}, "delta"),
        ({"delta": np.nan}, "delta"),
        ({"delta": 10**400}, "delta"),
        ({"beta": -0.1}, "beta"),
        ({"beta": 1.5}, "beta"),
        ({"scale": [1.0, 2.0]}, "scale"),
        ({"scale": -1.0}, "scale"),
        ({"scale": [1.0, 0.0, 1.0]}, "constant"),
        ({"scale": [1.0, np.nan, 1.0]}, "scale"),
        ({"center": [1.0]}, "center"),
        ({"max_components": 0}, "max_components"),
        ({"prune_age": -1}, "prune_age"),
        ({"prune_mass": -1.0}, "prune_mass"),
        ({"update": "magic"}, "update must be 'exact' or 'paper', not 'magic'"),
        ({"update": ["exact"]}, "update must be 'exact' or 'paper'"),
        ({"update": np.array(["exact", "paper"])}, "update must be 'exact' or 'paper'"),
        ({"warmup": 0}, "warmup"),
        ({"half_life": 0.0}, "half_life"),
        ({"half_life": "long"}, "half_life"),
    ],
)
def test_bad_settings_are_refused(settings, match):
    with pytest.raises(ValueError, match=match):
        Mixture(**{"n_features": 3, **settings})


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"delta": -1.0}, "delta"),
        ({"beta": 2.0}, "beta"),
        ({"scale": [1.0]}, "scale"),
        ({"max_components": 0}, "max_components"),
    ],
)
def test_bad_settings_are_refused_by_fit(settings, match):
    with pytest.raises(ValueError, match=match):
        IncrementalGaussianMixture(**settings).fit(ROWS)
    with pytest.raises(ValueError, match="contamination"):
        MixtureOutlierDetector(contamination=0.7).fit(ROWS)


@pytest.mark.parametrize(
    ("known", "wanted", "match"),
    [
        ([0, 0], None, "twice"),
        ([3], None, "does not exist"),
        ([-4], None, "does not exist"),
        ([0], [0], "both"),
        ([0, 1, 2], None, "wanted"),
        ([0.5], None, "column numbers"),
        (["a"], None, "column numbers"),
    ],
)
def test_bad_variables_are_refused(known, wanted, match):
    with pytest.raises(ValueError, match=match):
        random_mixture(2, 3).infer(np.zeros((1, len(known))), known, wanted)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (([[0.0, 0.0]], [np.zeros((2, 2))]), "positive definite"),
        (([[0.0, 0.0]], [[[1.0, 0.5], [0.0, 1.0]]]), "symmetric"),
        (([[0.0, 0.0]], [np.eye(3)]), "shape"),
        (([[np.nan, 0.0]], [np.eye(2)]), "NaN"),
        (([[0.0, 0.0]], [np.eye(2)], [0.0]), "positive"),
        (([[0.0], [1.0]], [np.eye(1)] * 2, [1e-300, 1.0]), "too much"),
        (([[0.0, 0.0]], [np.eye(2)], [1.0, 1.0]), "weight"),
    ],
)
def test_bad_parameters_are_refused(arguments, match):
    with pytest.raises(ValueError, match=match):
        Mixture.from_parameters(*arguments)


def test_merging_what_does_not_exist_is_refused():
    mixture = random_mixture(2, 2)
    before = everything(mixture)
    for pair in ((0, 2), (0, 0), (-1, 0)):
        with pytest.raises(ValueError, match="merge"):
            mixture.merge(*pair)
    assert everything(mixture) == before


def test_an_error_behind_a_new_class_changes_nothing():
    model = learnt("open classifier")
    before = everything(model)
    rows = ROWS[:3].copy()
    rows[2, 0] = 1e200
    with pytest.raises(ValueError, match="rescale"):
        model.partial_fit(rows, [0, 5, 6])
    assert everything(model) == before


# -- Labels and targets ----------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "classes", "match"),
    [
        ([0, 7], None, "not declared"),
        ([0, 1], [0, 1, 2], "differ"),
        ([0], None, "inconsistent"),
        ([0.5, 1.5], None, "Unknown label type|continuous"),
        ([np.nan, 1.0], None, "NaN"),
        (None, None, "requires y"),
    ],
)
def test_mismatched_classes_are_refused(labels, classes, match):
    model = learnt("classifier")
    before = everything(model)
    with pytest.raises(ValueError, match=match):
        model.partial_fit(ROWS[:2], labels, classes=classes)
    assert everything(model) == before


@pytest.mark.parametrize(
    "labels", [np.array(["a", 1], dtype=object), ["a", "b"], ["0", "1"], [True, False], [None, 1]]
)
def test_labels_of_different_kinds_are_refused(labels):
    model = learnt("open classifier")
    before = everything(model)
    with pytest.raises((ValueError, TypeError)):
        model.partial_fit(ROWS[:2], labels)
    assert everything(model) == before
    with pytest.raises((ValueError, TypeError)):
        model.partial_fit(ROWS[:2], [0, 1], classes=["a", "b"])
    assert everything(model) == before


@pytest.mark.parametrize(
    ("targets", "match"),
    [
        (np.zeros((2, 2)), "2 outputs"),
        ([0.0], "inconsistent"),
        ([np.nan, 0.0], "NaN"),
        ([np.inf, 0.0], "infinity"),
        ([1e200, 0.0], "rescale"),
        (["a", "b"], "convert"),
    ],
)
def test_mismatched_targets_are_refused(targets, match):
    model = learnt("regressor")
    before = everything(model)
    with pytest.raises(ValueError, match=match):
        model.partial_fit(ROWS[:2], targets)
    assert everything(model) == before


def test_names_that_change_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=["a", "b", "c"])
    model = IncrementalGaussianMixture().partial_fit(frame)
    before = everything(model)
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame.rename(columns={"a": "z"}))
    assert everything(model) == before


def test_a_copy_shares_nothing():
    mixture = learnt("mixture")
    before = everything(mixture)
    copy.copy(mixture.copy()).learn(ROWS)
    assert everything(mixture) == before


def test_small_things_that_are_refused_with_a_reason():
    rng = np.random.default_rng(0)
    model = MixtureRegressor().fit(rng.normal(size=(50, 1)), rng.normal(size=50))
    for quantiles in (0.5, []):
        with pytest.raises(ValueError, match="must be a sequence"):
            model.predict_quantiles([[0.0]], quantiles)
    mixture = Mixture(2, delta=0.1).learn(rng.normal(size=(50, 2)))
    for probability in (0.0, 1.5, np.nan):
        with pytest.raises(ValueError, match="between 0 and 1"):
            mixture.infer([[0.0]], [0]).quantile(probability)
    with pytest.raises(ValueError, match="whole number"):
        mixture.merge(0.0, 1.0)


def test_masked_entries_are_missing_ones():
    rows = np.random.default_rng(0).normal(size=(50, 2))
    mask = rows > 1.0
    masked = np.ma.array(rows, mask=mask)
    gappy = np.where(mask, np.nan, rows)
    mixtures = [Mixture(2, delta=1.0).learn(entries).means for entries in (masked, gappy)]
    assert np.array_equal(*mixtures)
    models = [IncrementalGaussianMixture(delta=1.0).fit(entries) for entries in (masked, gappy)]
    assert np.array_equal(models[0].means_, models[1].means_)


def test_columns_known_in_rows_without_weight_are_not_known():
    rows = np.array([[1.0, np.nan], [2.0, np.nan], [3.0, 4.0]])
    imputer = MixtureImputer().fit(rows, sample_weight=[1.0, 1.0, 0.0])
    with pytest.warns(UserWarning, match="no known value"):
        assert imputer.transform([[1.0, np.nan]])[0, 1] == 0.0
