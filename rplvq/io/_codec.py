"""Turns parts and parameters into JSON and plain arrays, and back.

Values that JSON knows are stored as they are. Every other value becomes an object whose only key names its type, such
as ``{"tuple": [...]}`` or ``{"part": ["Constant", {"value": 0.5}]}``. Arrays are collected separately, each under the
path of the value that holds it. An estimator is stored as its class, parameters and fitted attributes, and may be
inside another one. Reading does not unpickle or evaluate anything: the class of a part or an estimator is looked up by
its name in :mod:`rplvq.parts`.
"""

import math
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

import attrs
import numpy as np
import sklearn
from sklearn.base import BaseEstimator

from rplvq.io._archive import UNREADABLE
from rplvq.io._invariants import ROUNDED, SAFETY, TOLERANCE, answers_of, deviation
from rplvq.manifolds import FromPymanopt, is_from_pymanopt
from rplvq.parts import fields_of, is_saved_estimator, known_part, saved_estimator
from rplvq.protocols import Array
from rplvq.training import Trainer

BIT_GENERATORS = {
    cls.__name__: cls
    for cls in (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64)
}
REQUESTS = ("fit", "partial_fit", "predict", "predict_proba", "score", "transform")
"""Methods whose metadata requests are saved."""


class Packer:
    """Turns values into JSON, and collects their arrays in ``arrays`` by name; none of them has the dtype object."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self.manifold: object = None

    def pack(self, value: Any, where: str) -> object:
        """Return ``value`` as JSON, or raise ValueError; ``where`` is its path, which names it and its arrays."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:  # JSON knows neither NaN nor infinity
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.generic):
            return {"scalar": self._put(np.asarray(value), where)}
        if isinstance(value, np.ndarray):
            return self._array(np.asarray(value), where)
        if type(value) in (list, tuple):
            items = [self.pack(item, f"{where}.{index}") for index, item in enumerate(value)]
            return items if isinstance(value, list) else {"tuple": items}
        if isinstance(value, Mapping):
            return {"dict": [self._item(*pair, where, index) for index, pair in enumerate(value.items())]}
        if isinstance(value, np.random.Generator):
            return {"generator": self._random(value.bit_generator.state, where, BIT_GENERATORS)}
        if isinstance(value, np.random.RandomState):
            return {"random_state": self._random(value.get_state(legacy=False), where, ("MT19937",))}
        if is_from_pymanopt(value):
            self.manifold = value
            return {"pymanopt": [type(value).__qualname__, str(value)]}
        if is_saved_estimator(type(value)):
            return {"estimator": self.pack_estimator(value, f"{where}.")}
        return self._part(value, where)

    def pack_estimator(self, estimator: BaseEstimator, where: str = "") -> dict[str, object]:
        """Return class, parameters, fitted attributes and requests of an estimator as JSON, as :meth:`pack`."""
        cls = type(estimator)
        parameters = estimator.get_params(deep=False) | dict(saved_estimator(cls.__qualname__).left_out)
        fitted = {name: value for name, value in vars(estimator).items() if name not in parameters}
        requests = fitted.pop("_metadata_request", None)  # an object of scikit-learn
        for name, value in fitted.items():
            if isinstance(value, Trainer):
                fitted[name] = attrs.evolve(value, callbacks=())
        asked = {method: getattr(requests, method).requests for method in REQUESTS if requests is not None}
        content: dict[str, object] = {
            "estimator": cls.__qualname__,
            "parameters": {name: self.pack(value, f"{where}{name}") for name, value in parameters.items()},
            "fitted": {name: self.pack(value, f"{where}{name}") for name, value in fitted.items()},
            "requests": {
                method: {key: alias for key, alias in pairs.items() if alias is not None}
                for method, pairs in asked.items()
            },
        }
        with suppress(*UNREADABLE):  # a model that cannot answer is saved as well
            answers, tolerance = self._answers(estimator, content)
            content["answers"] = {"tolerance": tolerance, "values": self.pack(answers, f"{where}answers")}
        return content

    def _answers(self, estimator: BaseEstimator, content: dict[str, object]) -> tuple[list[Array], float]:
        """Return the answers of an estimator, and how much rounding on other machines may change them.

        A model whose matrices are nearly singular answers less exactly. This shows as soon as its arrays are rounded.
        """
        rng = np.random.default_rng(0)  # the same model gives the same file
        rounded = dict(self.arrays)
        for name, array in self.arrays.items():
            if array.ndim > 1 and array.dtype.kind in "fc" and array.size:
                rounded[name] = array + ROUNDED * np.abs(array).max() * rng.uniform(-1, 1, array.shape)
        answers = answers_of(estimator)
        other = answers_of(Unpacker(rounded, self.manifold).unpack_estimator(content))
        return answers, max(TOLERANCE, SAFETY * deviation(answers, other))

    def _put(self, array: Array, where: str) -> str:
        while where in self.arrays or where == "header":
            where += "_"
        self.arrays[where] = array
        return where

    def _item(self, key: object, value: object, where: str, index: int) -> list[object]:
        # Keys that are no identifiers may contain characters that are not allowed in file names of an archive.
        name = key if isinstance(key, str) and key.isidentifier() else index
        return [self.pack(key, f"{where}.{name}.key"), self.pack(value, f"{where}.{name}")]

    def _array(self, array: Array, where: str) -> dict[str, object]:
        if array.dtype.kind == "O":  # strings from pandas: their items go into the JSON
            items = [self.pack(item, where) for item in array.ravel().tolist()]
            return {"objects": [list(array.shape), items]}
        if array.dtype.hasobject or array.dtype.kind == "T":
            raise ValueError(f"{where} cannot be saved: its arrays have dtype {array.dtype}")
        return {"array": self._put(array, where)}

    def _random(self, state: Mapping[str, object], where: str, known: Collection[str]) -> object:
        if (name := state["bit_generator"]) not in known:
            raise ValueError(f"{where} cannot be saved: it draws from {name}. Use an integer seed")
        return self.pack(state, where)

    def _part(self, value: object, where: str) -> dict[str, object]:
        cls = type(value)
        if known_part(cls.__qualname__) is cls:
            fields = {name: self.pack(field, f"{where}.{name}") for name, field in fields_of(value).items()}
            return {"part": [cls.__qualname__, fields]}
        if hasattr(value, "__array__") and not isinstance(value, type):
            return self._array(np.asarray(value), where)
        name = cls.__qualname__
        why = f"{value!r} is neither a plain value, an array nor a part of the library. Write it as a class of attrs "
        why += "(@attrs.frozen) and decorate that with @rplvq.parts.register_part"
        if hasattr(value, "get_params") and not isinstance(value, type):
            why = f"{name} is no estimator of rplvq. If it holds numbers, texts and arrays only, call "
            why += f"rplvq.parts.register_part({name}) before you save and before you load. Otherwise save it all by "
            why += "skops: see rplvq.parts.trusted_types"
        elif attrs.has(cls):
            why = f"its class {name} is not registered. Decorate it with @rplvq.parts.register_part, in both programs"
        raise ValueError(f"{where} cannot be saved: {why}")


class Unpacker:
    """Turns the output of a :class:`Packer` back into values, given the arrays, and the pymanopt manifold, if any."""

    def __init__(self, arrays: Mapping[str, Array], manifold: object = None) -> None:
        self.arrays = arrays
        self.manifold = manifold.manifold if isinstance(manifold, FromPymanopt) else manifold
        self.manifold_used = False
        self.deviations: list[str] = []
        self.readers: dict[str, Callable[[Any], object]] = {
            "float": float,
            "scalar": lambda name: self.arrays[name][()],
            "array": lambda name: self.arrays[name],
            "objects": lambda content: np.fromiter(map(self.unpack, content[1]), dtype=object).reshape(content[0]),
            "tuple": lambda items: tuple(self.unpack(items)),
            "dict": lambda items: dict(self.unpack(items)),
            "generator": self._generator,
            "random_state": self._random_state,
            "pymanopt": self._pymanopt,
            "part": self._part,
            "estimator": self.unpack_estimator,
        }

    def unpack(self, packed: object) -> Any:
        """Return the value; raise ValueError, or KeyError or TypeError at input that no Packer made."""
        if isinstance(packed, list):
            return [self.unpack(item) for item in packed]
        if not isinstance(packed, dict):
            return packed
        ((tag, content),) = packed.items()
        return self.readers[tag](content)

    def _generator(self, packed: object) -> np.random.Generator:
        state = self.unpack(packed)
        bits: Any = BIT_GENERATORS[state["bit_generator"]](0)
        bits.state = state
        return np.random.Generator(bits)

    def _random_state(self, packed: object) -> np.random.RandomState:
        state = self.unpack(packed)
        restored = np.random.RandomState(BIT_GENERATORS[state["bit_generator"]](0))
        restored.set_state(state)
        return restored

    def _pymanopt(self, content: list[str]) -> object:
        trained = "the model was trained on pymanopt's {} ({})".format(*content)
        if self.manifold is None:
            raise ValueError(f"{trained}, whose settings are not in the file: pass load_model(path, manifold=...)")
        if [type(self.manifold).__qualname__, str(self.manifold)] != content:
            raise ValueError(f"manifold={self.manifold} does not match: {trained}, pass that manifold")
        self.manifold_used = True
        return self.manifold

    def _part(self, content: list[Any]) -> object:
        name, packed = content
        cls = known_part(name)
        if cls is None:
            remedy = "import the module that defines it, whose class is decorated with @rplvq.parts.register_part"
            raise ValueError(f"the model holds a part {name!r} that is not known here: {remedy}, before loading")
        fields = {field: self.unpack(value) for field, value in packed.items()}
        try:
            return cls(**fields)
        except (TypeError, ValueError) as error:
            raise ValueError(f"part {name!r} does not take the fields {sorted(fields)} of the file: {error}") from error

    def unpack_estimator(self, content: Mapping[str, Any]) -> BaseEstimator:
        """Return an estimator; raise ValueError if its class is not known, or it holds what no fit leaves behind."""
        saved = saved_estimator(content.get("estimator", "RiemannianLVQ"))
        parameters = {name: self.unpack(value) for name, value in content["parameters"].items()}
        # What is never saved is not read either: a forged folder of a cache would be unpickled by a later fit.
        estimator = saved.cls(**parameters | dict(saved.left_out))
        fitted = {name: self.unpack(value) for name, value in content["fitted"].items()}
        for name, value in fitted.items():
            if hasattr(saved.cls, name) or name in parameters:
                raise ValueError(f"the file sets {name!r}, which is no fitted attribute")
            setattr(estimator, name, value)
        # scikit-learn sets requests only while metadata routing is enabled, so it is enabled here for a moment.
        with sklearn.config_context(enable_metadata_routing=True):
            for name, requests in content["requests"].items():
                if requests:
                    getattr(estimator, f"set_{name}_request")(**requests)
        if fitted:
            saved.check(estimator)
        if "answers" in content:
            self._compare(estimator, **content["answers"])
        return estimator

    def _compare(self, estimator: BaseEstimator, tolerance: float, values: object) -> None:
        """Note it if an estimator does not answer as it did when it was saved."""
        try:
            differs = deviation(self.unpack(values), answers_of(estimator))
        except UNREADABLE:
            differs = math.inf
        if not differs <= tolerance:
            self.deviations.append(f"the answers of its {type(estimator).__name__} differ by {differs:.2g}")
