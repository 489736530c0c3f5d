"""Model files: versioned, checked, free of code.

A model file is a safetensors file: the length of a JSON header as eight bytes,
little-endian; the header; the arrays, one after the other. The header's
metadata holds the format's name and version, the model's class and settings
as JSON, and a SHA-256 digest of everything else. Nothing in a file is ever
executed, and every value is checked before a model is made of it.
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

from figmn._typing import AnyArray

VERSION: Final = 1
"""Version of the format; raised when a file of an earlier one needs translation."""

_FORMAT: Final = "figmn"
_DTYPES: Final = {"F64": np.dtype("<f8"), "I64": np.dtype("<i8"), "BOOL": np.dtype("?")}
_NAMES: Final = {dtype: name for name, dtype in _DTYPES.items()}
_LENGTH_BYTES: Final = 8
_LONGEST_HEADER: Final = 100_000_000
_LABELS: Final = "biufUSO"
"""Kinds of arrays that settings may hold, as NumPy names them."""
_MOST_BYTES: Final = 2**28
"""That such an array may take."""
_NONSENSE: Final = (
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
        name = description["class"]
        if name not in _CLASSES:
            raise ModelFileError(f"it holds an unknown class, {name!r}")
        cls = getattr(importlib.import_module(_CLASSES[name]), name)
        return cls.from_state(description["settings"], arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)!r} cannot be loaded: {error}.") from None
    except _NONSENSE as error:
        raise ModelFileError(
            f"{os.fspath(path)!r} cannot be loaded: its content is not consistent ({error})."
        ) from None


def _encode(model: str, arrays: dict[str, AnyArray]) -> bytes:
    header: dict[str, Any] = {
        "__metadata__": {"format": _FORMAT, "version": str(VERSION), "model": model}
    }
    chunks, start = [], 0
    for name, array in arrays.items():
        chunk = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [start, start + len(chunk)],
        }
        chunks.append(chunk)
        start += len(chunk)
    data = b"".join(chunks)
    header["__metadata__"]["sha256"] = _digest(header, data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _LENGTH_BYTES)  # arrays start at a multiple of eight
    return len(text).to_bytes(_LENGTH_BYTES, "little") + text + data


def _decode(content: bytes) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    length = int.from_bytes(content[:_LENGTH_BYTES], "little")
    end = _LENGTH_BYTES + length
    if len(content) < _LENGTH_BYTES or not 2 <= length <= _LONGEST_HEADER or end > len(content):
        raise ModelFileError("it is not a model file, or it is truncated")
    header = _parse(content[_LENGTH_BYTES:end])
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or metadata.get("format") != _FORMAT:
        raise ModelFileError("it is not a figmn model")
    version = metadata.get("version")
    if version != str(VERSION):
        raise ModelFileError(
            f"its format is version {version!r} and this figmn reads version {VERSION}; "
            "a newer figmn may read it"
        )
    data = content[end:]
    found = metadata.pop("sha256", None)
    if found != _digest({"__metadata__": metadata, **header}, data):
        raise ModelFileError("its checksum does not match: it is truncated or was altered")
    arrays = {name: _array(name, entry, data) for name, entry in header.items()}
    description = _parse(str(metadata.get("model")).encode())
    return description, arrays


def _parse(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ModelFileError("its header is not valid JSON") from None
    if not isinstance(value, dict):
        raise ModelFileError("its header is not a JSON object")
    return value


def _array(name: str, entry: dict[str, Any], data: bytes) -> AnyArray:
    dtype = _DTYPES.get(entry["dtype"])
    shape, (start, end) = entry["shape"], entry["data_offsets"]
    whole = all(type(number) is int and number >= 0 for number in (*shape, start, end))
    if dtype is None or not whole or end > len(data):
        raise ModelFileError(f"array {name!r} is described wrongly")
    if end - start != math.prod(shape) * dtype.itemsize:
        raise ModelFileError(f"array {name!r} has the wrong size")
    array = np.frombuffer(data[start:end], dtype=dtype).reshape(shape)
    return array.astype(dtype.newbyteorder("="))  # a copy, which may be written to


def _digest(header: dict[str, Any], data: bytes) -> str:
    canonical = json.dumps(header, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode() + data).hexdigest()


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
        dtype = np.dtype(value["dtype"])
        if dtype.kind not in _LABELS or dtype.itemsize * len(value["items"]) > _MOST_BYTES:
            raise ValueError(f"an array of {dtype} is none of labels or numbers")
        array = items(len(value["items"]), dtype=dtype)
        array[:] = [from_plain(item) for item in value["items"]]
        return array.reshape(value["shape"])
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    return value
