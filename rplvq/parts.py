"""What makes an object a part: checks of its parameters, nested parameters, and the registry of its class."""

from __future__ import annotations

import sys
from collections.abc import Callable
from numbers import Real
from typing import Any, Self, TypeVar

import attrs
import numpy as np
from sklearn.base import BaseEstimator

__all__ = [
    "PartsMixin",
    "all_callable",
    "auto_or_bool",
    "count_from",
    "fields_of",
    "is_saved_estimator",
    "known_part",
    "library_estimator",
    "library_part",
    "library_version",
    "not_negative",
    "positive_or_none",
    "register_part",
    "require_count",
    "saved_estimator",
    "share",
]


def _fields(part: Any) -> dict[str, Any]:
    """Settable fields of an attrs instance by name; empty for anything else."""
    if isinstance(part, type) or not attrs.has(type(part)):
        return {}
    return {field.name: getattr(part, field.name) for field in attrs.fields(type(part)) if field.init}


class PartsMixin(BaseEstimator):
    """Parameters of parts that are attrs classes, which are replaced as a whole because they are frozen."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with ``deep`` also ``name__field`` for each field of each attrs part.

        Parameters
        ----------
        deep : bool, default=True
            Whether to look into parts and nested estimators.

        Returns
        -------
        dict of str to object

        Examples
        --------
        >>> from rplvq import Annealed, RiemannianLVQ
        >>> RiemannianLVQ(sigma2=Annealed(2.0)).get_params()["sigma2__start"]
        2.0
        """
        params: dict[str, Any] = super().get_params(deep=deep)
        if deep:
            for name in list(super().get_params(deep=False)):
                params |= {f"{name}__{field}": value for field, value in _fields(params[name]).items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, ``name__field`` for a field of a part; nothing is changed if one is invalid.

        Parameters
        ----------
        **params : object
            New values by name.

        Returns
        -------
        self : estimator

        Raises
        ------
        ValueError
            If a parameter or field does not exist, or a value is refused by its part.

        Examples
        --------
        >>> from rplvq import Annealed, RiemannianLVQ
        >>> RiemannianLVQ(sigma2=Annealed(2.0)).set_params(sigma2__start=1.0).sigma2.start
        1.0
        """
        own = super().get_params(deep=False)
        whole = {name: value for name, value in params.items() if name in own}
        changes: dict[str, dict[str, Any]] = {}
        rest = {}
        for key, value in params.items():
            name, _, field = key.partition("__")
            part = whole.get(name, own.get(name))
            if key in own:
                continue
            if field in _fields(part):
                changes.setdefault(name, {})[field] = value
            elif name in own and not hasattr(part, "set_params"):
                fields = f"its fields are {list(_fields(part))}" if _fields(part) else "it has no fields to set"
                raise ValueError(f"Invalid parameter {key!r}: {name} is {part!r}, and {fields}")
            else:
                rest[key] = value
        if rest:
            super().set_params(**rest)
        for name, values in changes.items():
            whole[name] = attrs.evolve(whole.get(name, own[name]), **values)
        for name, value in whole.items():
            setattr(self, name, value)
        return self


def require_count(name: str, value: Any, minimum: int) -> None:
    """Raise ValueError unless ``value`` is an integer of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < minimum:
        raise ValueError(f"{name} must be an integer of at least {minimum}, got {value!r}")


def count_from(minimum: int, *, or_none: bool = False) -> Callable[[Any, Any, Any], None]:
    """Return a validator for integers of at least ``minimum``, and None if allowed."""

    def check(_: Any, attribute: Any, value: Any) -> None:
        if not (or_none and value is None):
            require_count(attribute.name, value, minimum)

    return check


def positive_or_none(_: Any, attribute: Any, value: Any) -> None:
    """Accept a positive number or None."""
    if value is not None and (isinstance(value, (bool, str)) or not value > 0):
        raise ValueError(f"{attribute.name} must be a positive number or None, got {value!r}")


def not_negative(_: Any, attribute: Any, value: Any) -> None:
    """Accept a number of at least 0."""
    if isinstance(value, (bool, str)) or value is None or not value >= 0:
        raise ValueError(f"{attribute.name} must be a number of at least 0, got {value!r}")


def share(*, zero: bool = False, or_none: bool = False) -> Callable[[Any, Any, Any], None]:
    """Return a validator for numbers between 0 and 1, and 0 or None if allowed."""
    wanted = "a number from 0 to below 1" if zero else "a number between 0 and 1"
    wanted += ", or None" if or_none else ""

    def check(_: Any, attribute: Any, value: Any) -> None:
        if or_none and value is None:
            return
        inside = isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < 1
        if not inside or (value == 0 and not zero):
            raise ValueError(f"{attribute.name} must be {wanted}, got {value!r}")

    return check


def all_callable(_: Any, attribute: Any, value: Any) -> None:
    """Accept a sequence of callables."""
    for index, item in enumerate(value):
        if not callable(item):
            raise ValueError(f"{attribute.name}[{index}] is {item!r}, which cannot be called")


def auto_or_bool(_: Any, attribute: Any, value: Any) -> None:
    """Accept True, False and "auto"."""
    if not isinstance(value, bool) and not (isinstance(value, str) and value == "auto"):
        raise ValueError(f"{attribute.name} must be 'auto', True or False, got {value!r}")


PartT = TypeVar("PartT", bound=type[Any])

_ESTIMATORS: dict[str, type] = {}
_SHIPPED: dict[str, type] = {}
_REGISTERED: dict[str, type] = {}


def library_part(cls: PartT) -> PartT:
    """Enter a class of the library into the table of classes that model files may name; a class decorator.

    A model file holds names and never code. A name means a class only if the class was entered here or by
    :func:`register_part`.
    """
    _SHIPPED[cls.__qualname__] = cls
    return cls


def library_estimator(cls: PartT) -> PartT:
    """Enter an estimator class of the library into the table of those that model files may hold; a class decorator."""
    _ESTIMATORS[cls.__qualname__] = cls
    return cls


def is_saved_estimator(cls: type) -> bool:
    """Whether a model file can hold this estimator class; subclasses are other classes."""
    return _ESTIMATORS.get(cls.__qualname__) is cls


def saved_estimator(name: str) -> type:
    """Return the estimator class that a model file names; raise ValueError if there is none."""
    if name not in _ESTIMATORS:
        raise ValueError(f"the file holds an estimator {name!r}, which is not known here")
    return _ESTIMATORS[name]


def library_version() -> str:
    """Return the version of the library, which the package's root states; the root imports this module."""
    return str(sys.modules[__name__.partition(".")[0]].__version__)


def register_part(cls: PartT) -> PartT:
    """Let models be saved that hold parts of a class of your own; use it as a class decorator.

    The class is known by its qualified name (``__qualname__``); a program that loads the model must define
    and register it before, too. Registering a class of the same module and name again replaces it.

    Parameters
    ----------
    cls : type
        A class of attrs whose fields are numbers, strings, arrays, lists, tuples, dicts or other parts.

    Returns
    -------
    type
        The class itself.

    Raises
    ------
    ValueError
        If it is not a class of attrs, or another class has its name.

    Examples
    --------
    >>> import attrs
    >>> from rplvq.parts import register_part
    >>> @register_part
    ... @attrs.frozen
    ... class Harmonic:
    ...     start: float = 0.1
    ...     def __call__(self, epoch, n_epochs):
    ...         return self.start / (1 + epoch)
    >>> Harmonic(0.5)(4, 10)
    0.1
    """
    is_attrs: bool = isinstance(cls, type) and attrs.has(cls)  # a plain bool: attrs.has narrows the type of cls
    if not is_attrs:
        raise ValueError(f"register_part takes a class of attrs, got {cls!r}: decorate it with @attrs.frozen first")
    name = cls.__qualname__
    other = _SHIPPED.get(name) or _REGISTERED.get(name)
    if other is not None and (name in _SHIPPED or other.__module__ != cls.__module__):
        raise ValueError(f"{cls!r} cannot be registered: {other!r} has the name {name!r} already. Rename the class")
    _REGISTERED[name] = cls
    return cls


def known_part(name: str) -> type | None:
    """Class of a name, or None."""
    return _SHIPPED.get(name) or _REGISTERED.get(name)


def fields_of(part: Any) -> dict[str, Any]:
    """Return the constructor arguments of a part by name."""
    cls = type(part)
    if attrs.has(cls):
        return {field.alias or field.name: getattr(part, field.name) for field in attrs.fields(cls) if field.init}
    names = part._fields if isinstance(part, tuple) else cls.__slots__  # type: ignore[attr-defined]
    return {name: getattr(part, name) for name in names}
