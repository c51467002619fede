"""Model files of whole pipelines: what comes back, what is refused, and what damage and forgery can do."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from rplvq import (
    AffineInvariant,
    CommonSubspace,
    LogEuclidean,
    Product,
    Recenter,
    RejectOption,
    RiemannianLVQ,
    SPDProjection,
    TransferClassifier,
    TrialCovariances,
    load_model,
    parts,
    save_model,
)
from rplvq.datasets import make_syn1
from rplvq.exceptions import ModelFileError
from rplvq.features import AugmentedCovariances, FilterBankCovariances, RegionCovariances
from rplvq.inspection import model_card
from rplvq.io import read_model
from rplvq.io._archive import open_archive, seal_archive
from rplvq.parts import register_part, trusted_types
from rplvq.preprocessing import StreamingPipeline
from rplvq.protocols import Array

X, Y = make_syn1(n_per_class=8, n=4, random_state=0)
SESSION = np.arange(len(X)) % 2


def lvq(*args: Any, **parameters: Any) -> RiemannianLVQ:
    return RiemannianLVQ(*args, **{"max_epochs": 1, "sigma2": 1.0, "random_state": 0} | parameters)


def streaming() -> StreamingPipeline:
    return StreamingPipeline([("recenter", Recenter(online=True)), ("lvq", lvq())])


MODELS: dict[str, Callable[[], Any]] = {
    "recenter": lambda: Recenter(),
    "online": lambda: Recenter(online=True),
    "projection": lambda: SPDProjection(2, classifier=lvq(), max_iter=3),
    "pipeline": lambda: make_pipeline(Recenter(), lvq()),
    "nested": lambda: make_pipeline(make_pipeline(Recenter(), SPDProjection(3, max_iter=2)), "passthrough", lvq()),
    "option": lambda: RejectOption(lvq(), coverage=0.9, cv=2),
    "option at the end": lambda: make_pipeline(Recenter(), RejectOption(lvq("log_euclidean"), coverage=0.9, cv=2)),
    "option around": lambda: RejectOption(make_pipeline(Recenter(), lvq()), coverage=0.9, cv=2),
    "transfer": lambda: TransferClassifier(lvq(), target=0, cv=2),
    "streaming": streaming,
}


def fitted(name: str) -> Any:
    with sklearn.config_context(enable_metadata_routing=True):
        given = {"groups": SESSION} if name in ("recenter", "pipeline", "transfer") else {}
        return MODELS[name]().fit(X, Y, **given)


def answers(model: Any, new: Array = X[::2], session: Any = None) -> list[Array]:
    given = {} if session is None else {"groups": np.full(len(new), session)}
    methods = ("predict", "predict_proba", "transform", "reasons", "certainty")
    with sklearn.config_context(enable_metadata_routing=True):
        return [np.asarray(getattr(model, name)(new, **given)) for name in methods if hasattr(model, name)]


@pytest.mark.parametrize("name", MODELS)
def test_a_file_holds_the_whole(name: str, tmp_path: pathlib.Path) -> None:
    model = fitted(name)
    session = 1 if name in ("recenter", "pipeline") else None
    save_model(model, tmp_path / "one")
    again = load_model(tmp_path / "one")
    assert type(again) is type(model)
    assert repr(again) == repr(model)
    for here, there in zip(answers(model, session=session), answers(again, session=session), strict=True):
        assert_array_equal(here, there)
    steps = model_card(tmp_path / "one", markdown=False)["steps"]
    assert steps[-1].startswith("RiemannianLVQ(") or name in ("recenter", "online", "projection")
    save_model(again, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    sklearn.clone(again)


def test_a_stream_goes_on_where_it_was(tmp_path: pathlib.Path) -> None:
    model = fitted("streaming")
    for name in ("before", "after"):
        save_model(model, tmp_path / name)
        again = load_model(tmp_path / name)
        with sklearn.config_context(enable_metadata_routing=True):
            for one in (model, again):
                one.partial_fit(2 * X[:5], Y[:5], groups=["tuesday"] * 5)
        for here, there in zip(answers(model, X, "tuesday"), answers(again, X, "tuesday"), strict=True):
            assert_array_equal(here, there)
        model = again


def test_requests_of_nested_estimators_and_the_folder_of_a_cache(tmp_path: pathlib.Path) -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        last = lvq().set_fit_request(sample_weight=True, groups=False)
        model = Pipeline([("recenter", Recenter()), ("lvq", last)], memory=str(tmp_path / "cache"))
        model.fit(X, Y, sample_weight=np.ones(len(X)))
        save_model(model, tmp_path / "m")
        again = load_model(tmp_path / "m")
        again.fit(X, Y, sample_weight=np.ones(len(X)))
    assert again.memory is None
    assert model.memory is not None
    assert again[-1].get_metadata_routing().fit.requests == last.get_metadata_routing().fit.requests


def test_another_process_predicts_the_same(tmp_path: pathlib.Path) -> None:
    models = {"plain": lvq().fit(X, Y), "whole": fitted("option at the end")}
    for name, model in models.items():
        save_model(model, tmp_path / f"{name}.npz")
    np.save(tmp_path / "X.npy", X)
    code = (
        "import sys, numpy as np, rplvq; X = np.load('X.npy')\n"
        "for name in ('plain', 'whole'):\n"
        "    model = rplvq.load_model(f'{name}.npz')\n"
        "    np.savez(f'{name} answers.npz', labels=model.predict(X), proba=model.predict_proba(X))\n"
        "    print('sklearn.pipeline' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
    for name, model in models.items():
        found = np.load(tmp_path / f"{name} answers.npz")
        assert_array_equal(found["labels"], model.predict(X))
        assert_array_equal(found["proba"], model.predict_proba(X))


class Halve(TransformerMixin, BaseEstimator):
    """A step of a user."""

    def __init__(self, factor: float = 0.5) -> None:
        self.factor = factor

    def fit(self, X: Any, y: Any = None) -> Halve:
        self.shape_ = np.shape(X)[1:]
        return self

    def transform(self, X: Any) -> Array:
        return self.factor * np.asarray(X)


def test_foreign_steps_are_named_with_the_way_out(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_ESTIMATORS", dict(parts._ESTIMATORS))
    function = FunctionTransformer(np.abs)
    for model, step, name in (
        (make_pipeline(Halve(), lvq()), "steps.0.1", "Halve"),
        (make_pipeline(Recenter(), function, RejectOption(lvq("euclid"), threshold=0.1)), "steps.1.1", type(function)),
        (RejectOption(make_pipeline(Halve(), lvq()), threshold=0.1), "estimator.steps.0.1", "Halve"),
    ):
        what = name if isinstance(name, str) else name.__name__
        with pytest.raises(ValueError, match=rf"{step} cannot be saved: {what} is .*register_part\({what}\).*skops"):
            save_model(model.fit(X, Y), tmp_path / "m")
    with pytest.raises(TypeError, match="save_model can save estimators of this library and pipelines"):
        save_model(Halve().fit(X), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []
    register_part(Halve)
    model = make_pipeline(Halve(0.25), lvq()).fit(X, Y)
    save_model(model, tmp_path / "m")
    assert_array_equal(load_model(tmp_path / "m").predict(X), model.predict(X))
    assert load_model(tmp_path / "m")[0].factor == 0.25
    del parts._ESTIMATORS["Halve"]
    with pytest.raises(ModelFileError, match="an estimator 'Halve', which is not known here: import the module"):
        load_model(tmp_path / "m")


def test_steps_of_scikit_learn_can_be_registered(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_ESTIMATORS", dict(parts._ESTIMATORS))
    vectors = X[:, 0]
    model = make_pipeline(register_part(StandardScaler)(), lvq("euclidean_vectors")).fit(vectors, Y)
    save_model(model, tmp_path / "m")
    assert_array_equal(load_model(tmp_path / "m").predict(vectors), model.predict(vectors))


def test_registered_subclasses_are_checked_as_their_base(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_ESTIMATORS", dict(parts._ESTIMATORS))

    @register_part
    class Sub(RiemannianLVQ):
        pass

    save_model(Sub(max_epochs=0, callbacks=[print]).fit(X, Y), tmp_path / "m")
    assert type(load_model(tmp_path / "m")) is Sub
    forge(tmp_path / "m", lambda header, _: header["fitted"].pop("state_"))
    with pytest.raises(ModelFileError):
        load_model(tmp_path / "m")
    for taken in ("Pipeline", "Recenter"):
        with pytest.raises(ValueError, match=f"an estimator has the name {taken!r} already"):
            register_part(type(taken, (Halve,), {"__module__": "elsewhere"}))


@pytest.mark.parametrize(
    "make",
    [
        lambda: (make_pipeline(Recenter(), lvq()), X),
        lambda: (make_pipeline(StandardScaler(), lvq("euclidean_vectors")), X[:, 0]),
        lambda: (make_pipeline(Recenter(), RejectOption(lvq("tangent"), coverage=0.9, cv=2)), X),
        lambda: (make_pipeline(lvq("learned_log_euclidean")), X),
        lambda: (make_pipeline(lvq(Product([LogEuclidean(), AffineInvariant()]))), np.stack([X, X], axis=1)),
    ],
)
def test_skops_reads_a_pipeline_with_the_published_trust_list(make: Callable[[], Any]) -> None:
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    model, samples = make()
    content = skops.dumps(model.fit(samples, Y))
    assert set(skops.get_untrusted_types(data=content)) <= set(trusted_types())
    again = skops.loads(content, trusted=trusted_types())
    assert_array_equal(again.predict(samples), model.predict(samples))


# ---------------------------------------------------------------------------------------------------------- damage


def forge(path: pathlib.Path, change: Callable[[dict[str, Any], dict[str, Array]], Any]) -> None:
    """Write a file again with another header or other arrays, and a seal that fits."""
    header, arrays = open_archive(path)
    change(header, arrays)
    header.pop("arrays")
    path.write_bytes(seal_archive(header, arrays))


def of_array(name: str, change: Callable[[Array], Array]) -> Callable[..., None]:
    return lambda _, arrays: arrays.update({name: change(arrays[name])})


def asymmetric(array: Array) -> Array:
    array = array.copy()
    array.reshape(-1)[1] += 50
    return array


FORGERIES: dict[str, tuple[str, Callable[..., Any]]] = {
    "asymmetric mean": ("recenter", of_array("means_", asymmetric)),
    "negative mean": ("recenter", of_array("means_", np.negative)),
    "mean that is not a number": ("pipeline", of_array("steps.0.1.means_", lambda a: a * np.nan)),
    "missing mean": ("pipeline", of_array("steps.0.1.means_", lambda a: a[:1])),
    "smaller means": ("recenter", of_array("means_", lambda a: a[:, :3, :3])),
    "sizes of zero": ("recenter", of_array("sizes_", lambda a: 0 * a)),
    "running start": ("online", of_array("start_", asymmetric)),
    "components": ("projection", of_array("components_", lambda a: 2 * a)),
    "prototypes of a projection": ("projection", of_array("prototypes_", np.negative)),
    "prototypes of a step": ("pipeline", of_array("steps.1.1.prototypes_", lambda a: 2 * a)),
    "limits": ("option at the end", of_array("steps.1.1.limits_.sqdist", np.negative)),
    "classes of an option": ("option", of_array("classes_", lambda a: a + 1)),
    "classes of a transfer": ("transfer", of_array("classes_", lambda a: a + 1)),
    "unfitted": ("recenter", lambda header, _: header["fitted"].clear()),
    "unknown step": ("pipeline", lambda header, _: header.update(estimator="GridSearchCV")),
    "a method": ("pipeline", lambda header, _: header["fitted"].update(predict=1)),
    "a parameter as an attribute": ("recenter", lambda header, _: header["fitted"].update(tol=1.0)),
    "threshold": ("option", lambda header, _: header["fitted"].update(threshold_={"float": "nan"})),
    "criterion": ("option", lambda header, _: header["fitted"].update(criterion_="all")),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_what_no_fit_leaves_behind_is_refused(name: str, tmp_path: pathlib.Path) -> None:
    model, change = FORGERIES[name]
    save_model(fitted(model), tmp_path / "m")
    forge(tmp_path / "m", lambda *_: None)
    load_model(tmp_path / "m")
    forge(tmp_path / "m", change)
    with pytest.raises(ModelFileError, match="m: "):
        load_model(tmp_path / "m")


def test_a_forged_file_cannot_name_a_cache_which_a_fit_would_unpickle(tmp_path: pathlib.Path) -> None:
    save_model(fitted("pipeline"), tmp_path / "m")
    forge(tmp_path / "m", lambda header, _: header["parameters"].update(memory=str(tmp_path)))
    assert load_model(tmp_path / "m").memory is None


def damaged(whole: bytes, rng: np.random.Generator) -> bytes:
    """Change, cut, insert or blank some bytes."""
    data, kind = bytearray(whole), rng.integers(4)
    place = int(rng.integers(len(data)))
    if kind == 0:
        data[place] ^= int(rng.integers(1, 256))
    elif kind == 1:
        del data[place : place + int(rng.integers(1, 400))]
    elif kind == 2:
        data[place:place] = rng.bytes(int(rng.integers(1, 50)))
    else:
        data[place : place + 512] = rng.bytes(512)
    return bytes(data)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in the JSON of a header, as a container and a key."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in pairs for place in [(value, key), *places(item)]]


def resealed(header: dict[str, Any], arrays: dict[str, Array], rng: np.random.Generator) -> bytes:
    """Replace a value of the header by another one, or damage an array, and seal it again."""
    header, arrays = json.loads(json.dumps(header)), dict(arrays)
    header.pop("arrays")
    if rng.random() < 0.5:
        every = places(header)
        container, key = every[rng.integers(len(every))]
        other = json.loads(json.dumps(header["parameters"]))
        wrong = [None, -1, 1e300, "os.system", [], {"estimator": other}, {"part": ["eval", {}]}]
        container[key] = wrong[rng.integers(len(wrong))]
    else:
        name = list(arrays)[rng.integers(len(arrays))]
        array = arrays[name]
        if rng.random() < 0.5 and array.size:
            raw = bytearray(array.tobytes())
            raw[rng.integers(len(raw))] ^= int(rng.integers(1, 256))
            array = np.frombuffer(bytes(raw), array.dtype).reshape(array.shape)
        arrays[name] = array if rng.random() < 0.5 else np.resize(array, (1,) * array.ndim)
    return seal_archive(header, arrays)


def survey(count: int, seed: int, folder: pathlib.Path) -> dict[str, int]:
    """Damage pipeline files in ``count`` ways; count what was refused, and what loads after it was sealed again."""
    path, rng, found = folder / "m", np.random.default_rng(seed), {"refused": 0, "loaded": 0}
    originals = []
    for name in ("pipeline", "option at the end", "streaming"):
        save_model(fitted(name), path)
        originals.append((path.read_bytes(), *open_archive(path)))
    with np.errstate(all="ignore"):
        for index in range(count):
            whole, header, arrays = originals[index % len(originals)]
            is_sealed = index % 2 == 1
            path.write_bytes(resealed(header, arrays, rng) if is_sealed else damaged(whole, rng))
            try:
                load_model(path)
                assert is_sealed or path.read_bytes() == whole, index
                found["loaded"] += 1
            except ModelFileError:
                found["refused"] += 1
    return found


def test_damaged_pipelines_execute_nothing_and_raise_one_kind_of_error(tmp_path: pathlib.Path) -> None:
    """Each damage of bytes is refused; what is sealed again is refused by that error only, or is a model again."""
    executed: list[str] = []
    is_watched = False

    def watch(event: str, arguments: Any) -> None:
        if is_watched and event in ("os.system", "subprocess.Popen", "pickle.find_class", "exec", "import"):
            executed.append(event)

    survey(2, 0, tmp_path)  # imports what it needs
    sys.addaudithook(watch)
    is_watched = True
    found = survey(60, 1, tmp_path)
    is_watched = False
    assert executed == []
    assert found["refused"] >= 40


def test_the_file_states_the_data_only_if_it_is_told(tmp_path: pathlib.Path) -> None:
    model = fitted("pipeline")
    save_model(model, tmp_path / "m")
    assert read_model(tmp_path / "m").record == {}
    save_model(model, tmp_path / "m", data=(X, Y))
    one = read_model(tmp_path / "m").record
    assert one["shape"] == list(X.shape)
    assert one["counts"] == [{"class": str(label), "samples": 8} for label in range(4)]
    save_model(model, tmp_path / "m", data=(X.tolist(), Y.tolist()))
    assert read_model(tmp_path / "m").record["sha256"] == one["sha256"]
    changed = X.copy()
    changed[3, 1, 1] = np.nextafter(X[3, 1, 1], np.inf)
    for data in ((changed, Y), (X, Y[::-1])):
        save_model(model, tmp_path / "m", data=data)
        assert read_model(tmp_path / "m").record["sha256"] != one["sha256"]


RNG = np.random.default_rng(0)
TRIALS = RNG.normal(size=(24, 4, 60)) * np.repeat([1.0, 2.0], 12)[:, None, None] ** np.arange(4)[:, None]
TRIALS -= TRIALS.mean(axis=1, keepdims=True)  # an average reference
IMAGES = RNG.normal(size=(24, 6, 6)) * np.repeat([1.0, 2.0], 12)[:, None, None]
FROM_DATA: dict[str, tuple[Callable[[], Any], Array]] = {
    "trials": (lambda: make_pipeline(TrialCovariances(shrinkage=0.1), Recenter()), TRIALS),
    "rank": (lambda: make_pipeline(TrialCovariances(), CommonSubspace()), TRIALS),
    "bands": (lambda: FilterBankCovariances(60, [(4, 8), (8, 12)], shrinkage=0.1), TRIALS),
    "augmented": (lambda: AugmentedCovariances(order=2, lag=3, shrinkage=0.1), TRIALS),
    "regions": (lambda: RegionCovariances(), IMAGES),
}


@pytest.mark.parametrize("name", FROM_DATA)
def test_pipelines_that_begin_with_the_data_come_back(name: str, tmp_path: pathlib.Path) -> None:
    make, data = FROM_DATA[name]
    metric = Product((AffineInvariant(), LogEuclidean())) if name == "bands" else "affine_invariant"
    pipeline = make_pipeline(make(), lvq(metric)).fit(data, np.repeat(["low", "high"], 12))
    path = tmp_path / "model.npz"
    save_model(pipeline, path)
    again = load_model(path)
    assert repr(again) == repr(pipeline)
    assert_array_equal(again.predict_proba(data), pipeline.predict_proba(data))
