"""The classifiers of the comparison: the paper's own, ours, and scikit-learn's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from figmn import Mixture, MixtureClassifier
from figmn.reference import IGMN
from paper.typing import AnyArray, Array

NEAREST: Final = {"delta": 0.5**0.5, "beta": 2e-6}
"""What the paper ran, as far as can be told: its delta of 0.5 multiplied variances, and its
beta of 4.9e-324 came out as 2e-6 (see the errata)."""


class OneInversion(IGMN):
    """IGMN that inverts once for each row: the novelty test and the posteriors share it."""

    _distances: Array | None = None

    def learn_one(self, x: Array, weight: float = 1.0) -> None:
        """Learn one row of shape (D,)."""
        self._distances = super().squared_distances(x)
        super().learn_one(x, weight)
        self._distances = None

    def squared_distances(self, x: Array) -> Array:
        """Squared Mahalanobis distances to each component, of shape (K,)."""
        return super().squared_distances(x) if self._distances is None else self._distances


def column_scale(rows: Array) -> Array:
    """Standard deviations of the columns; a constant one takes the others' geometric mean."""
    deviations: Array = rows.std(axis=0)
    varied = deviations > 1e-12 * np.abs(rows).max(axis=0)
    typical = np.exp(np.log(deviations[varied]).mean())
    return np.where(varied, deviations, typical)


class PaperClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classification as in the paper, by either of its algorithms.

    One mixture over the inputs and an indicator a class; the class whose indicator has the
    largest conditional mean given the inputs is predicted.

    Parameters
    ----------
    engine : {"figmn", "igmn"}
        Rank-one updates of precisions, or covariances that are inverted for each row.
    """

    def __init__(self, engine: str = "figmn") -> None:
        self.engine = engine

    def fit(self, X: Array, y: AnyArray) -> Self:
        """Learn rows of shape (N, D), without gaps, in the order given."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        rows = np.hstack([X, np.eye(len(self.classes_))[codes]])
        scale = column_scale(rows)
        if self.engine == "igmn":
            self.model_: Mixture | IGMN = OneInversion(scale, **NEAREST).learn(rows)
        else:
            self.model_ = Mixture(rows.shape[1], scale=scale, **NEAREST).learn(rows)
        return self

    def indicators(self, X: Array) -> Array:
        """Conditional means of the indicators, of shape (N, C)."""
        known = np.arange(X.shape[1])
        wanted = X.shape[1] + np.arange(len(self.classes_))
        if isinstance(self.model_, Mixture):
            return self.model_.infer(X, known, wanted).mean()
        return np.array([self.model_.predict(row, known, wanted)[0] for row in X])

    def predict(self, X: Array) -> AnyArray:
        """Labels of shape (N,)."""
        labels: AnyArray = self.classes_[self.indicators(X).argmax(axis=1)]
        return labels

    @property
    def n_components_(self) -> int:
        """Number of components that were created."""
        if isinstance(self.model_, Mixture):
            return self.model_.n_components
        return len(self.model_.masses)


def _encoded(model: Any, nominal: AnyArray) -> Pipeline:
    """What batch models are given: gaps filled, nominal columns one-hot, others scaled."""
    choices = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
    )
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = ColumnTransformer(
        [("choices", choices, np.flatnonzero(nominal)), ("numbers", numbers, ~nominal)],
        sparse_threshold=0.0,
    )
    return make_pipeline(columns, model)


_MODELS: Final[dict[str, Callable[[AnyArray, int], Any]]] = {
    "igmn": lambda _, __: make_pipeline(SimpleImputer(), PaperClassifier("igmn")),
    "nearest": lambda _, __: make_pipeline(SimpleImputer(), PaperClassifier("figmn")),
    "defaults": lambda _, __: make_pipeline(MixtureClassifier()),
    "forest": lambda nominal, seed: _encoded(RandomForestClassifier(random_state=seed), nominal),
    "network": lambda nominal, seed: _encoded(
        MLPClassifier(hidden_layer_sizes=(100,), random_state=seed), nominal
    ),
    "linear-svm": lambda nominal, _: _encoded(SVC(kernel="linear"), nominal),
    "rbf-svm": lambda nominal, _: _encoded(SVC(), nominal),
}

OURS: Final = ("nearest", "defaults")
PEERS: Final = ("forest", "network", "linear-svm", "rbf-svm")
TITLES: Final = {
    "igmn": "IGMN",
    "nearest": "FIGMN, nearest variant",
    "defaults": "FIGMN, our defaults",
    "forest": "random forest",
    "network": "neural network",
    "linear-svm": "linear SVM",
    "rbf-svm": "RBF SVM",
}


def classifier(name: str, nominal: AnyArray, seed: int) -> Pipeline:
    """A classifier by name, for columns some of which are nominal.

    Parameters
    ----------
    name : str
        One of :data:`OURS`, :data:`PEERS` or ``"igmn"``.
    nominal : bool array of shape (D,)
    seed : int
        Of models that are random.
    """
    return _MODELS[name](nominal, seed)
