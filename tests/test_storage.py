"""Model files: they continue bit for bit, and bad ones are refused."""

from __future__ import annotations

import copy
import json
import os
import pickle
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from sklearn.base import clone

import figmn
from figmn import (
    IncrementalGaussianMixture,
    Mixture,
    MixtureClassifier,
    MixtureImputer,
    MixtureOutlierDetector,
    MixtureRegressor,
    ModelFileError,
)
from helpers import clusters, random_mixture

DATA = Path(__file__).parent / "data"
ROWS = clusters(300, 3)
MORE = clusters(200, 3, seed=1)
MANY = clusters(100, 300, seed=2)
LABELS = np.array(["red", "green", "blue"])[np.arange(300) % 3]


def learnt_models():
    gaps = ROWS.copy()
    gaps[::7, 1] = np.nan
    return {
        "mixture": Mixture(3, delta=0.4, prune_age=20, prune_mass=2.0).learn(ROWS),
        "mixture in warm-up": Mixture(3, delta=1.0, beta=0.1).learn(
            gaps[:20], np.linspace(0.0, 1.0, 20)
        ),
        "mixture with a scale": Mixture(
            3, scale=[1.0, 2.0, 3.0], max_components=4, delta=1.0, beta=0.1
        ).learn(ROWS),
        "mixture without rows": Mixture(2, delta=1.0, beta=0.1),
        "mixture of many variables": Mixture(300, scale=1.0, beta=0.01).learn(MANY),
        "mixture of many variables, grown old": Mixture(300, scale=1.0, beta=0.0).learn(
            np.tile(MANY, (3, 1))
        ),
        "density": IncrementalGaussianMixture(delta=0.4).partial_fit(ROWS),
        "classifier": MixtureClassifier().partial_fit(ROWS, LABELS),
        "regressor": MixtureRegressor(scale=np.ones(3)).fit(ROWS[:, :2], ROWS[:, 2]),
        "imputer": MixtureImputer().fit(gaps),
        "detector": MixtureOutlierDetector(contamination=0.05).fit(ROWS),
    }


MODELS = learnt_models()


def learn_more(model):
    if isinstance(model, MixtureClassifier):
        return model.partial_fit(MORE, LABELS[:200])
    if isinstance(model, MixtureRegressor):
        return model.partial_fit(MORE[:, :2], MORE[:, 2])
    if isinstance(model, Mixture):
        return model.learn(MANY if model.n_features > 3 else MORE[:, : model.n_features])
    return model.partial_fit(MORE)


def state_of(model):
    mixture = model if isinstance(model, Mixture) else model.mixture_
    parts = (mixture.means, mixture.covariances, mixture.masses, mixture.log_determinants)
    return b"".join(part.tobytes() for part in (*parts, mixture.ages))


def through_file(model, folder):
    model.save(folder / "model")
    return figmn.load(folder / "model")


def through_pickle(model, _folder):
    return pickle.loads(pickle.dumps(model))


def through_copy(model, _folder):
    return copy.deepcopy(model)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("way", [through_file, through_pickle, through_copy])
def test_what_comes_back_learns_on_bit_for_bit(name, way, tmp_path):
    original = copy.deepcopy(MODELS[name])
    returned = way(original, tmp_path)
    assert type(returned) is type(original)
    assert state_of(returned) == state_of(original)
    assert state_of(learn_more(returned)) == state_of(learn_more(original))


@pytest.mark.parametrize("name", [name for name in MODELS if "mixture" not in name])
def test_estimators_come_back_whole(name, tmp_path):
    original = MODELS[name]
    returned = through_file(original, tmp_path)
    ours, theirs = original.get_params(), returned.get_params()
    for key in ours:
        assert np.array_equal(ours[key], theirs[key]), key
    columns = original.n_features_in_
    method = "transform" if name == "imputer" else "predict"
    answers = (getattr(model, method)(MORE[:, :columns]) for model in (original, returned))
    assert np.array_equal(*answers)
    clone(returned)


def test_column_names_are_kept(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=["a", "b", "c"])
    returned = through_file(IncrementalGaussianMixture().fit(frame), tmp_path)
    assert returned.feature_names_in_.tolist() == ["a", "b", "c"]
    returned.predict(frame)


@pytest.mark.parametrize(
    "labels",
    [[True, False], [3, -1], [2.0, 1.0], ["é", ""], np.array(["x", "yy"], dtype=object)],
    ids=["bool", "int", "float", "str", "object"],
)
def test_labels_of_every_kind_are_kept(labels, tmp_path):
    labels = np.array(labels) if isinstance(labels, list) else labels
    model = MixtureClassifier().fit(ROWS, labels[np.arange(300) % 2])
    returned = through_file(model, tmp_path)
    assert returned.classes_.tolist() == model.classes_.tolist()
    assert returned.classes_.dtype == model.classes_.dtype


def test_what_users_set_on_an_estimator_does_not_stand_in_the_way(tmp_path):
    pandas = pytest.importorskip("pandas")
    imputer = MixtureImputer(scale=pandas.Series([1.0, 2.0, 3.0])).fit(ROWS)
    imputer.set_output(transform="pandas")
    imputer.remark = object()
    returned = through_file(imputer, tmp_path)
    assert isinstance(returned.transform(ROWS), pandas.DataFrame)
    assert not hasattr(returned, "remark")


def test_saving_through_a_link_keeps_the_link(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    MODELS["mixture"].save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert figmn.load(tmp_path / "real").n_components == MODELS["mixture"].n_components


def test_other_tools_can_read_the_arrays(tmp_path):
    mixture = MODELS["mixture"]
    mixture.save(tmp_path / "model.safetensors")
    arrays = load_file(tmp_path / "model.safetensors")
    assert np.array_equal(arrays["means"], mixture.means)
    precisions = np.einsum(
        "kri,kr,krj->kij", arrays["whiteners"], 1.0 / arrays["variances"], arrays["whiteners"]
    )
    np.testing.assert_allclose(precisions, mixture.precisions, rtol=1e-9, atol=1e-12)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model"
    MODELS["mixture"].save(path)
    before = path.read_bytes()

    def full_disk(_descriptor):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space left"):
        MODELS["density"].save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


def test_unlearnt_estimators_are_not_saved(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        MixtureRegressor().save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


# -- Bad files ---------------------------------------------------------------------


@pytest.fixture
def content(tmp_path):
    random_mixture(2, 2).save(tmp_path / "good")
    return (tmp_path / "good").read_bytes()


def refused(content, tmp_path, match=None):
    path = tmp_path / "bad"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=match) as caught:
        figmn.load(path)
    assert "bad" in str(caught.value)
    assert caught.value.__cause__ is not None


def test_every_truncation_is_refused(content, tmp_path):
    for length in [0, 1, 7, 8, 9, 100, len(content) // 2, len(content) - 1]:
        refused(content[:length], tmp_path)


def test_every_flipped_bit_is_refused(content, tmp_path):
    rng = np.random.default_rng(0)
    for position in rng.choice(len(content), 300, replace=False):
        altered = bytearray(content)
        altered[position] ^= 1 << rng.integers(8)
        refused(bytes(altered), tmp_path)


def test_trailing_bytes_are_refused(content, tmp_path):
    refused(content + b"\0" * 8, tmp_path, "checksum")


@pytest.mark.parametrize(
    "foreign",
    [
        b"\x80\x04\x95" + b"x" * 50,
        b"PK\x03\x04" + b"\0" * 100,
        b"not a model at all, just text that goes on for a while",
        (2).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (10**18).to_bytes(8, "little") + b"{}",
        (100_000).to_bytes(8, "little") + b"[" * 100_000,
    ],
)
def test_foreign_files_are_refused(foreign, tmp_path):
    refused(foreign, tmp_path)


def test_a_pickle_is_not_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "exploded"),)

    refused(pickle.dumps(Bomb()), tmp_path)
    assert not (tmp_path / "exploded").exists()


def forge(content, change):
    """A file with a valid checksum and a forged description or forged arrays."""
    from figmn import storage

    description, arrays = storage._decode(content)
    change(description, arrays)
    return storage._encode(json.dumps(description), arrays)


def with_arrays_at(content, places):
    """A file with a valid checksum whose arrays lie where they are said to."""
    from figmn import storage

    header, data = storage._split(content)
    for name, (shape, start, end) in places.items():
        header[name] = {"dtype": "F64", "shape": shape, "data_offsets": [start, end]}
    header["__metadata__"].pop("sha256")
    header["__metadata__"]["sha256"] = storage._digest(header, data)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def peak_of_refusing(content, tmp_path, match=None):
    """Bytes that were taken at most while a file was refused."""
    tracemalloc.start()
    try:
        refused(content, tmp_path, match)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


MISPLACED = {
    "overlap": {"surprise": ([1], 0, 8)},
    "overlap, many times": {str(i): ([2**17], 0, 2**20) for i in range(300)},
    "hole": {"means": ([1, 2], 16, 32), "ages": ([0], 0, 0)},
    "beyond the end": {"surprise": ([2**40], 0, 2**43)},
    "backwards": {"surprise": ([1], 8, 0)},
    "size that overflows": {"surprise": ([2**62, 2**62], 0, 8)},
    "size of fewer than none": {"surprise": ([-1, -1], 0, 8)},
}


@pytest.mark.parametrize("name", MISPLACED)
def test_arrays_that_do_not_tile_the_file_are_refused_before_they_are_made(name, tmp_path):
    clusters_of_many = Mixture(200, delta=1.0, beta=0.1, scale=1.0).learn(np.zeros((2, 200)))
    clusters_of_many.save(tmp_path / "good")
    content = with_arrays_at((tmp_path / "good").read_bytes(), MISPLACED[name])
    assert peak_of_refusing(content, tmp_path, "not consistent") < 4 * len(content)


def test_axes_of_empty_arrays_are_bounded_by_the_file(content, tmp_path):
    def widen(_, arrays):
        for name in ("means", "variances", "marginals"):
            arrays[name] = np.zeros((0, 10**8))
        for name in ("whiteners", "remainders"):
            arrays[name] = np.zeros((0, 10**8, 10**8))

    assert peak_of_refusing(forge(content, widen), tmp_path, "longer than the file") < 2**20


def test_components_without_their_matrices_take_no_room(content, tmp_path):
    def widen(_, arrays):
        arrays["size"][0], arrays["means"] = 50, np.zeros((50, 2000))

    altered = forge(content, widen)
    assert peak_of_refusing(altered, tmp_path, "wrong shape") < 4 * len(altered)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex64])
def test_arrays_of_other_types_are_refused(dtype, content, tmp_path, monkeypatch):
    from figmn import storage

    monkeypatch.setattr(storage, "_DTYPES", (*storage._DTYPES, dtype))
    altered = forge(content, lambda _, a: set_item(a, "means", a["means"].astype(dtype)))
    monkeypatch.undo()
    refused(altered, tmp_path, np.dtype(dtype).name)


def test_arrays_are_written_by_their_values_whatever_their_strides():
    from figmn import storage

    arrays = {"a": np.arange(6.0).reshape(2, 3).T, "b": np.arange(8)[::2], "c": np.array(1.0)}
    _, returned = storage._decode(storage._encode("{}", arrays))
    for name, array in arrays.items():
        assert np.array_equal(returned[name], array)
        assert returned[name].shape == array.shape
        assert returned[name].flags.writeable


def test_labels_that_a_file_could_not_bring_back_are_not_saved(tmp_path):
    labels = np.array(["a", "b"], dtype="<U5000000")
    model = MixtureClassifier(delta=1.0).fit(ROWS, labels[np.arange(300) % 2].astype("<U1"))
    model.classes_ = labels
    with pytest.raises(ValueError, match="Shorten them"):
        model.save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


def set_item(mapping, key, value):
    mapping[key] = value


FORGERIES = {
    "class from elsewhere": lambda d, a: set_item(d, "class", "os.system"),
    "class of another kind": lambda d, a: set_item(d, "class", ["Mixture"]),
    "unknown setting": lambda d, a: set_item(d["settings"], "execute", "rm"),
    "setting of the wrong type": lambda d, a: set_item(d["settings"], "delta", "wide"),
    "settings missing": lambda d, a: d.pop("settings"),
    "array missing": lambda d, a: a.pop("means"),
    "array added": lambda d, a: set_item(a, "surprise", np.zeros(3)),
    "NaN": lambda d, a: a["means"].fill(np.nan),
    "negative mass": lambda d, a: a["masses"].fill(-1.0),
    "zero variance": lambda d, a: a["variances"].fill(0.0),
    "not triangular": lambda d, a: a["whiteners"].fill(1.0),
    "too many components": lambda d, a: a["size"].fill(10**12),
    "wrong shape": lambda d, a: set_item(a, "masses", np.ones(5)),
    "wrong type": lambda d, a: set_item(a, "means", a["means"].astype(np.int64)),
    "mean out of range": lambda d, a: a["means"].fill(1e300),
    "number out of range": lambda d, a: set_item(d["settings"], "delta", 10**400),
    "no axes": lambda d, a: set_item(a, "means", np.array(1.0)),
}


LAZY_FORGERIES = {
    "array missing": lambda a: a.pop("rows"),
    "array added": lambda a: set_item(a, "surprise", np.zeros(3)),
    "NaN": lambda a: a["roots"].fill(np.nan),
    "no spread": lambda a: a["spreads"].fill(0.0),
    "a covariance without a base": lambda a: a["kept"].fill(0.0),
    "not triangular": lambda a: a["roots"].fill(1.0),
    "a root without a diagonal": lambda a: a["roots"].fill(0.0),
    "components that are not there": lambda a: a["dense"].fill(9),
    "more rows than there are": lambda a: a["pending"].fill(10**6),
    "fewer rows than none": lambda a: a["pending"].fill(-1),
    "counts that are not": lambda a: set_item(a, "pending", a["pending"].astype(float)),
    "rows that explain too much": lambda a: a["rows"].fill(1.0),
    "wrong shape": lambda a: set_item(a, "row_factors", np.ones(5)),
    "wrong type": lambda a: set_item(a, "means", a["means"].astype(np.int64)),
    "mean out of range": lambda a: a["means"].fill(1e300),
    "no axes": lambda a: set_item(a, "means", np.array(1.0)),
}


@pytest.mark.parametrize("name", LAZY_FORGERIES)
def test_forged_files_of_lazy_components_are_refused(name, tmp_path):
    content = (DATA / "lazy-v1.figmn").read_bytes()
    refused(forge(content, lambda _, arrays: LAZY_FORGERIES[name](arrays)), tmp_path)


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_files_are_refused(name, content, tmp_path):
    refused(forge(content, FORGERIES[name]), tmp_path)


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


ESTIMATOR_FORGERIES = {
    "method replaced": lambda d, a: set_item(d["settings"]["learnt"], "predict", 1),
    "private method replaced": lambda d, a: set_item(d["settings"]["learnt"], "_fitted", 1),
    "columns that are not there": lambda d, a: set_item(
        d["settings"]["learnt"], "n_features_in_", 99
    ),
    "classes missing": lambda d, a: d["settings"]["learnt"].pop("classes_"),
    "columns of the mixture that are not there": lambda d, a: set_item(
        d["settings"]["learnt"],
        "_columns",
        {"dtype": "<i8", "shape": [3], "items": [0, 1, 10**40]},
    ),
    "dunder": lambda d, a: set_item(d["settings"]["learnt"], "__class__", 1),
    "unknown parameter": lambda d, a: set_item(d["settings"]["parameters"], "x", 1),
    "bad dtype": lambda d, a: set_item(
        d["settings"]["learnt"], "classes_", {"dtype": "nope", "shape": [1], "items": [1]}
    ),
    "lists in lists": lambda d, a: set_item(d["settings"]["learnt"], "classes_", nested(700)),
    "dtype of no labels": lambda d, a: set_item(
        d["settings"]["learnt"], "classes_", {"dtype": "V8", "shape": [1], "items": [1]}
    ),
    "labels larger than memory": lambda d, a: set_item(
        d["settings"]["learnt"],
        "classes_",
        {"dtype": "<U500000000", "shape": [1], "items": ["a"]},
    ),
    "many labels, each larger than the file": lambda d, a: d["settings"]["parameters"].update(
        {str(i): {"dtype": "<U100000", "shape": [1], "items": ["a"]} for i in range(100)}
    ),
}


@pytest.mark.parametrize("name", ESTIMATOR_FORGERIES)
def test_forged_estimators_are_refused(name, tmp_path):
    MODELS["classifier"].save(tmp_path / "good")
    content = (tmp_path / "good").read_bytes()
    refused(forge(content, ESTIMATOR_FORGERIES[name]), tmp_path)


def test_a_later_version_is_named(content, tmp_path, monkeypatch):
    from figmn import storage

    description, arrays = storage._decode(content)
    monkeypatch.setattr(storage, "VERSION", 99)
    later = storage._encode(json.dumps(description), arrays)
    monkeypatch.undo()
    refused(later, tmp_path, "99")


def test_a_missing_file_is_the_systems_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        figmn.load(tmp_path / "nothing")


# -- Files of earlier versions -------------------------------------------------------


def test_a_mixture_of_version_1_is_read():
    """Written from these very parameters, by the first version of the format."""
    mixture = figmn.load(DATA / "mixture-v1.figmn")
    np.testing.assert_allclose(mixture.means, [[0.0, 1.0], [4.0, -2.0]])
    covariances = [[[1.0, 0.5], [0.5, 2.0]], [[0.25, 0.0], [0.0, 9.0]]]
    np.testing.assert_allclose(mixture.covariances, covariances, rtol=1e-12)
    np.testing.assert_allclose(mixture.masses, [10.0, 30.0])
    choices = mixture.settings
    assert (choices.delta, choices.beta, choices.max_components) == (0.5, 0.01, 7)
    mixture.learn(MORE[:, :2])


def test_lazy_components_of_version_1_are_read():
    """They had learnt rows at 0 and 2, and three at 100, 101 and 102, of scales 1 to 4."""
    mixture = figmn.load(DATA / "lazy-v1.figmn")
    initial = np.diag([1.0, 4.0, 9.0, 16.0])
    np.testing.assert_allclose(mixture.means, np.outer([1.0, 101.0], np.ones(4)))
    np.testing.assert_allclose(mixture.covariances[0], initial / 2 + 1.0, rtol=1e-12)
    np.testing.assert_allclose(mixture.covariances[1], initial / 3 + 2 / 3, rtol=1e-12)
    np.testing.assert_allclose(mixture.masses, [2.0, 3.0])
    mixture.learn(np.ones((3, 4)))


def test_a_classifier_of_version_1_is_read():
    """It had learnt two rows, of the first and the last of three declared classes."""
    model = figmn.load(DATA / "classifier-v1.figmn")
    assert model.classes_.tolist() == ["left", "middle", "right"]
    assert model.get_params()["scale"] == [1.0, 2.0]
    assert model.predict([[0.0, 0.0], [8.0, 8.0]]).tolist() == ["left", "right"]
    np.testing.assert_allclose(model.mixture_.means[:, :2], [[0.0, 0.0], [8.0, 8.0]])
    model.partial_fit([[4.0, 4.0]], ["middle"])
