"""The paper's data: seven small sets, bundled, and images from a cache or a network.

Each bundled file is one of the examples of Weka 3.6.14, value by value; where they
come from is told in the folder's README.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources
from typing import Final

import numpy as np

from paper.datasets.images import Images, load_images
from paper.typing import AnyArray, Array

__all__ = ["NAMES", "Dataset", "Images", "load_dataset", "load_images"]

NAMES: Final = (
    "breast-cancer",
    "pima-diabetes",
    "glass",
    "ionosphere",
    "iris",
    "labor-neg-data",
    "soybean",
)
"""The data sets, in the order of the paper's tables."""


@dataclass(frozen=True)
class Dataset:
    """A classification problem.

    Attributes
    ----------
    name : str
    data : array of shape (N, D)
        Nominal values are numbered in the order that their column declares;
        NaN is missing.
    target : array of str of shape (N,)
    feature_names : tuple of str
    nominal : bool array of shape (D,)
        Which columns are nominal.
    """

    name: str
    data: Array
    target: AnyArray
    feature_names: tuple[str, ...]
    nominal: AnyArray


def load_dataset(name: str) -> Dataset:
    """Read a bundled data set.

    Parameters
    ----------
    name : str
        One of :data:`NAMES`.

    Examples
    --------
    >>> from paper.datasets import load_dataset
    >>> load_dataset("iris").data.shape
    (150, 4)
    """
    if name not in NAMES:
        raise ValueError(f"There is no bundled data set {name!r}: choose from {', '.join(NAMES)}.")
    text = resources.files(__package__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    _, *lines = text.splitlines()
    header, *records = csv.reader(lines)
    columns = [
        _column(title, values)
        for title, values in zip(header, zip(*records, strict=True), strict=True)
    ]
    return Dataset(
        name=name,
        data=np.column_stack(columns[:-1]),
        target=np.array([record[-1] for record in records]),
        feature_names=tuple(title.partition(": ")[0] for title in header[:-1]),
        nominal=np.array([": " in title for title in header[:-1]]),
    )


def _column(title: str, values: tuple[str, ...]) -> Array:
    """A column of numbers, from its header cell and its fields."""
    domain = title.partition(": ")[2].split(" | ")
    if domain == [""]:
        return np.array([float(value) if value else np.nan for value in values])
    codes = {value: float(code) for code, value in enumerate(domain)}
    return np.array([codes[value] if value else np.nan for value in values])
