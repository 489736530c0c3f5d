"""Model files: versioned, checked, free of code.

A model file is a safetensors file, whose metadata holds the format's name and
version, the model's class and settings as JSON, and a SHA-256 digest of
everything else. Nothing in a file is ever executed, and every value is checked
before a model is made of it. What a file can ask for is bounded by its own
size: arrays tile it, which the safetensors library sees to before it makes one.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import math
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from figmn._typing import AnyArray

VERSION: Final = 1
"""Version of the format; raised when a file of an earlier one needs translation."""

_FORMAT: Final = "figmn"
_DTYPES: Final = (np.float64, np.int64, np.bool_)
"""Of the arrays that hold what was learnt."""
_LENGTH_BYTES: Final = 8
_LABELS: Final = "biufUSO"
"""Kinds of arrays that settings may hold, as NumPy names them."""
_FEW_BYTES: Final = 2**24
"""That such arrays may take in all, however small the file."""
_MOST_TIMES: Final = 32
"""The size of the file that they may take otherwise: text in JSON is shorter than in arrays."""
_NONSENSE: Final = (
    SafetensorError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
)
"""What a file may cause that was made to be inconsistent, and nothing worse."""


class ModelFileError(ValueError):
    """A file is not a model, or not an intact one."""


class Storable(Protocol):
    """What a class offers to be kept in a file."""

    def to_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Settings as plain JSON values, and state as arrays."""
        ...

    @classmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, Any]) -> Any:
        """Inverse of ``to_state``; raises ValueError, TypeError or KeyError on nonsense."""
        ...


# The classes that a file may name, and where they live. Nothing else is ever
# looked up or imported at a file's word.
_CLASSES: Final = {
    "Mixture": "figmn.mixture",
    "IncrementalGaussianMixture": "figmn.estimators",
    "MixtureClassifier": "figmn.estimators",
    "MixtureImputer": "figmn.estimators",
    "MixtureOutlierDetector": "figmn.estimators",
    "MixtureRegressor": "figmn.estimators",
    "PlanningAgent": "figmn.rl",
    "QLearningAgent": "figmn.rl",
}


def save(model: Storable, path: str | os.PathLike[str]) -> None:
    """Write a model to a file, whole or not at all.

    Parameters
    ----------
    model : Mixture or estimator
    path : path-like
        An existing file is replaced once the new one is complete.
    """
    settings, arrays = model.to_state()
    name = type(model).__name__
    if name not in _CLASSES:
        raise TypeError(f"A {name} cannot be kept in a model file: pickle it instead.")
    description = {"class": name, "settings": settings}
    content = _encode(json.dumps(description, allow_nan=False), arrays)
    if not _is_modest(description, len(content)):
        raise ValueError(
            "Labels or settings take far more memory than a file of them would: their longest "
            "strings are too long for so many. Shorten them, or pickle the model instead."
        )
    target = Path(os.path.realpath(path))  # through a link, to what it points to
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model from a file written by ``save``.

    It goes on learning bit for bit as the original would.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    Mixture or estimator
        Of the class that was saved.

    Raises
    ------
    ModelFileError
        If the file is truncated, altered, foreign, or of a later version.

    Examples
    --------
    >>> import os, tempfile, figmn
    >>> mixture = figmn.Mixture(2).learn([[0.0, 1.0], [2.0, 3.0]])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.figmn")
    >>> mixture.save(path)
    >>> figmn.load(path).means.tolist() == mixture.means.tolist()
    True
    """
    content = Path(path).read_bytes()
    try:
        description, arrays = _decode(content)
        if not _is_modest(description, len(content)):
            raise ModelFileError("labels in it would take far more memory than the file")
        name = description["class"]
        if name not in _CLASSES:
            raise ModelFileError(f"it holds an unknown class, {name!r}")
        cls = getattr(importlib.import_module(_CLASSES[name]), name)
        return cls.from_state(description["settings"], arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)!r} cannot be loaded: {error}.") from error
    except _NONSENSE as error:
        raise ModelFileError(
            f"{os.fspath(path)!r} cannot be loaded: its content is not consistent ({error})."
        ) from error


def _encode(model: str, arrays: dict[str, AnyArray]) -> bytes:
    """Content of a file, from a description as JSON and arrays."""
    for name, array in arrays.items():
        if array.dtype not in _DTYPES:
            raise TypeError(f"Array {name!r} is of {array.dtype}, which a model file has not.")
    # The library takes the memory of an array as it lies there, whatever the strides.
    laid_out = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    metadata = {"format": _FORMAT, "version": str(VERSION), "model": model}
    # Where arrays lie is part of the digest, and known once they have been written.
    metadata["sha256"] = _digest(*_split(safetensors.numpy.save(laid_out, metadata)))
    return safetensors.numpy.save(laid_out, metadata)


def _decode(content: bytes) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Inverse of :func:`_encode`, with the description parsed."""
    description = _parse(_checked_metadata(content)["model"].encode())
    arrays = dict(sorted(safetensors.numpy.load(content).items()))
    for name, array in arrays.items():
        if array.dtype not in _DTYPES:
            raise ModelFileError(f"array {name!r} is of {array.dtype}")
        # Only of an array without entries could it be, and others are made to match its shape.
        if max(array.shape, default=0) > len(content):
            raise ModelFileError(f"array {name!r} has an axis longer than the file")
    return description, arrays


def _checked_metadata(content: bytes) -> dict[str, str]:
    """Metadata of a figmn model whose digest is right."""
    header, data = _split(content)
    metadata = header.get("__metadata__")
    if not isinstance(metadata, dict) or metadata.get("format") != _FORMAT:
        raise ModelFileError("it is not a figmn model")
    version = metadata.get("version")
    if version != str(VERSION):
        raise ModelFileError(
            f"its format is version {version!r} and this figmn reads version {VERSION}; "
            "a newer figmn may read it"
        )
    if metadata.pop("sha256", None) != _digest(header, data):
        raise ModelFileError("its checksum does not match: it is truncated or was altered")
    return metadata


def _split(content: bytes) -> tuple[dict[str, Any], memoryview]:
    """Header and arrays' bytes of a safetensors file: metadata is read before arrays are made."""
    length = int.from_bytes(content[:_LENGTH_BYTES], "little")
    end = _LENGTH_BYTES + length
    if len(content) < _LENGTH_BYTES or end > len(content):
        raise ModelFileError("it is not a model file, or it is truncated")
    return _parse(content[_LENGTH_BYTES:end]), memoryview(content)[end:]


def _parse(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError("its header is not valid JSON") from error
    if not isinstance(value, dict):
        raise ModelFileError("its header is not a JSON object")
    return value


def _digest(header: dict[str, Any], data: memoryview) -> str:
    canonical = json.dumps(header, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode())
    digest.update(data)
    return digest.hexdigest()


def _is_modest(description: dict[str, Any], size: int) -> bool:
    """Whether arrays in settings take no more memory than is due to a file of this size.

    In an array of strings each takes as much as the longest, which a few bytes can declare.
    """
    return _declared_bytes(description) <= max(_FEW_BYTES, _MOST_TIMES * size)


def _declared_bytes(value: Any) -> int:
    """Memory of all arrays in plain values."""
    if isinstance(value, list):
        return sum(map(_declared_bytes, value))
    if not isinstance(value, dict):
        return 0
    own = 0
    if "dtype" in value and "items" in value:
        own = np.dtype(str(value["dtype"])).itemsize * len(value["items"])
    return own + sum(map(_declared_bytes, value.values()))


# -- Plain values: settings and labels as JSON --------------------------------


def to_plain(value: Any, name: str) -> Any:
    """A setting or an array of labels as JSON values; raises TypeError for others."""
    if hasattr(value, "__array__") and not isinstance(value, np.generic):
        value = np.asarray(value)
        items = [to_plain(item, name) for item in value.ravel().tolist()]
        return {"dtype": value.dtype.str, "shape": list(value.shape), "items": items}
    if isinstance(value, np.generic):
        return to_plain(value.item(), name)
    if isinstance(value, list | tuple):
        return [to_plain(item, name) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: to_plain(item, name) for key, item in value.items()}}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(
        f"{name} holds a {type(value).__name__}, which a model file cannot keep: "
        "use numbers, strings or booleans, or pickle the model instead."
    )


def from_plain(value: Any) -> Any:
    """Inverse of :func:`to_plain`, but for tuples, which come back as lists."""
    if isinstance(value, dict) and set(value) == {"float"}:
        return float(value["float"])
    if isinstance(value, dict) and set(value) == {"dict"}:
        return {key: from_plain(item) for key, item in value["dict"].items()}
    if isinstance(value, dict):
        items: Callable[..., Any] = np.empty
        dtype = np.dtype(str(value["dtype"]))
        if dtype.kind not in _LABELS:
            raise ValueError(f"an array of {dtype} is none of labels or numbers")
        array = items(len(value["items"]), dtype=dtype)
        array[:] = [from_plain(item) for item in value["items"]]
        return array.reshape(value["shape"])
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    return value
