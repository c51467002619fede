"""Parts of the user's own in saved models, and what cannot be saved."""

from __future__ import annotations

import pathlib
from typing import Any

import attrs
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

import rplvq
from rplvq import RSLVQ, LogEuclidean, RiemannianLVQ
from rplvq import parts as registry
from rplvq.datasets import make_syn1
from rplvq.exceptions import ModelFileError
from rplvq.io import load_model, save_model
from rplvq.io._codec import Packer, Unpacker
from rplvq.parts import register_part
from rplvq.protocols import Array, Evaluation

X, Y = make_syn1(n_per_class=5, random_state=0)


class Carried:
    """Prototypes in a wrapper that no file knows."""

    def __init__(self, codes: Array) -> None:
        self.codes = codes

    def __len__(self) -> int:
        return len(self.codes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.codes, dtype=dtype)


@register_part
@attrs.frozen
class Carrying:
    """A manifold whose prototypes travel in a wrapper."""

    inner: LogEuclidean = attrs.field(factory=LogEuclidean)

    def encode(self, points: Any) -> Array:
        return self.inner.encode(points)

    def decode(self, codes: Any) -> Array:
        return self.inner.decode(np.asarray(codes))

    def sqdist(self, prototypes: Any, samples: Array) -> Array:
        return self.inner.sqdist(np.asarray(prototypes), samples)

    def connect(self, prototypes: Any, samples: Array) -> Any:
        return self.inner.connect(np.asarray(prototypes), samples)

    def move(self, geodesics: Any, weights: Array) -> Carried:
        return Carried(self.inner.move(geodesics, weights))


@register_part
@attrs.frozen
class Weighted:
    """A cost with fields of many kinds, one of them private."""

    class_weights: Array = attrs.field(eq=False)
    _inner: RSLVQ = attrs.field(factory=RSLVQ)
    notes: dict[Any, Any] = attrs.field(factory=dict)

    def __call__(self, sqdist: Array, targets: Array, labels: Array, sigma2: float) -> Evaluation:
        loss, slope = self._inner(sqdist, targets, labels, sigma2)
        weights = self.class_weights[targets]
        return Evaluation(loss * weights, slope * weights[:, None])


@attrs.frozen
class Unregistered:
    """A schedule that nobody told the library of."""

    def __call__(self, epoch: int, n_epochs: int) -> float:
        return 0.1


class Plain:
    """A schedule that is no class of attrs."""

    def __call__(self, epoch: int, n_epochs: int) -> float:
        return 0.1


def fitted(**parameters: Any) -> RiemannianLVQ:
    return RiemannianLVQ(**{"max_epochs": 2, "random_state": 0} | parameters).fit(X, Y)


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "model.npz"


def test_registered_parts_come_back(path: pathlib.Path) -> None:
    cost = Weighted(np.array([1.0, 2.0, 0.5, 1.0]), RSLVQ(priors=[0.1, 0.2, 0.3, 0.4]), {"by": "hand", 3: (1, None)})
    model = fitted(metric=Carrying(), cost=cost)
    save_model(model, path)
    again = load_model(path)
    assert again.metric == Carrying()
    assert again.cost == cost
    assert_array_equal(again.cost.class_weights, cost.class_weights)
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert_array_equal(again.partial_fit(X, Y).prototypes_, model.partial_fit(X, Y).prototypes_)


def test_part_that_the_loading_program_does_not_know(path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_model(fitted(metric=Carrying()), path)
    monkeypatch.delitem(registry._REGISTERED, "Carrying")
    with pytest.raises(ModelFileError, match="part 'Carrying' that is not known here: import the module"):
        load_model(path)


def test_part_that_has_other_fields_now(path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_model(fitted(metric=Carrying()), path)

    @attrs.frozen
    class Other:
        outer: int = 0

    monkeypatch.setitem(registry._REGISTERED, "Carrying", Other)
    with pytest.raises(ModelFileError, match=r"'Carrying' does not take the fields \['inner'\]"):
        load_model(path)


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        (
            "step_size",
            Unregistered(),
            "step_size cannot be saved: its class Unregistered is not registered.*register_part",
        ),
        ("step_size", Plain(), "step_size cannot be saved: .* neither a plain value.*@attrs.frozen"),
        ("step_size", lambda epoch, n_epochs: 0.1, "step_size cannot be saved: .*lambda.*register_part"),
        ("random_state", np.random.RandomState(np.random.PCG64(1)), "random_state cannot be saved: .*PCG64.*seed"),
    ],
)
def test_what_cannot_be_saved_is_named_and_nothing_is_written(
    parameter: str, value: Any, message: str, path: pathlib.Path
) -> None:
    save_model(fitted(), path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=message):
        save_model(fitted(**{parameter: value}), path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["model.npz"]


def test_only_fitted_models_of_the_class_itself_are_saved(path: pathlib.Path) -> None:
    class Sub(RiemannianLVQ):
        pass

    with pytest.raises(NotFittedError):
        save_model(RiemannianLVQ(), path)
    with pytest.raises(TypeError, match=r"no subclass unless registered by rplvq.parts.register_part.*Sub"):
        save_model(Sub(max_epochs=0).fit(X, Y), path)
    assert not path.exists()


def test_attributes_that_the_user_hung_on_a_model(path: pathlib.Path) -> None:
    model = fitted()
    model.subject = {"name": "S1", "ages": [31, 32.5], 7: np.array(["a", None], dtype=object)}
    save_model(model, path)
    again = load_model(path).subject
    assert again["ages"] == [31, 32.5]
    assert again[7].tolist() == ["a", None]
    model.subject = object()
    with pytest.raises(ValueError, match="subject cannot be saved"):
        save_model(model, path)


def test_every_public_part_of_the_library_can_be_saved() -> None:
    public = [getattr(rplvq, name) for name in rplvq.__all__]
    parts = [part for part in public if isinstance(part, type) and attrs.has(part)]
    parts.remove(rplvq.Checkpoint)  # a callback, and callbacks are not saved
    assert len(parts) > 10
    for part in parts:
        assert registry.known_part(part.__qualname__) is part


def test_registering_refuses_what_it_could_not_tell_apart() -> None:
    with pytest.raises(ValueError, match=r"class of attrs.*decorate it with @attrs.frozen first"):
        register_part(Plain)
    for name, module in (("RSLVQ", __name__), ("Weighted", "elsewhere")):
        clash = attrs.make_class(name, [])
        clash.__module__ = module
        with pytest.raises(ValueError, match=f"has the name {name!r} already. Rename the class"):
            register_part(clash)


def test_registering_the_same_class_again_replaces_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_REGISTERED", {})
    first, second = (attrs.make_class("Once", []) for _ in range(2))
    first.__module__ = second.__module__ = __name__
    assert register_part(first) is first
    register_part(second)
    assert registry.known_part("Once") is second


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -(2**200),
        -0.0,
        5e-324,
        np.inf,
        -np.inf,
        "Füße \ud800 \0",
        (1, [2, ("a",)], {}),
        {(1, "x/y"): [np.float32(0.1)], "\0": np.str_("ü"), "npy": np.bool_(True), "header": np.zeros(0)},
        np.array([], dtype="U3"),
        np.array([["a", None], [1, 2.5]], dtype=object),
        np.arange(6, dtype=">i2").reshape(2, 3, order="F"),
        np.array(np.datetime64("2024-02-29T12:00", "ns")),
        np.array([1 + 2j], dtype=np.complex64)[::-1],
    ],
    ids=repr,
)
def test_every_plain_value_comes_back_with_its_type(value: Any) -> None:
    packer = Packer()
    packed = packer.pack(value, "header")
    assert "header" not in packer.arrays
    again = Unpacker(packer.arrays).unpack(packed)
    assert repr(again) == repr(value)
    assert type(again) is type(value)


def test_nan_comes_back() -> None:
    assert np.isnan(Unpacker({}).unpack(Packer().pack(float("nan"), "x")))


@pytest.mark.parametrize("name", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_generators_go_on(name: str) -> None:
    generator = np.random.Generator(getattr(np.random, name)(3))
    generator.standard_normal(7)
    packer = Packer()
    again = Unpacker(packer.arrays).unpack(packer.pack(generator, "rng"))
    assert_array_equal(again.integers(0, 1000, 50, dtype=np.uint32), generator.integers(0, 1000, 50, dtype=np.uint32))


@pytest.mark.parametrize("dtype", [np.dtypes.StringDType(), np.dtype([("a", object)])])
def test_arrays_that_would_need_pickle_are_refused(dtype: Any) -> None:
    with pytest.raises(ValueError, match="init cannot be saved: its arrays have dtype"):
        Packer().pack(np.zeros(2, dtype=dtype), "init")
