"""Classes that model files may name: the library's parts, and those that users register.

A file holds names, never code; a name means a class only if it is in these tables.
"""

from __future__ import annotations

from typing import Any, TypeVar

import attrs

from rplvq import costs, initializers, manifolds, schedules
from rplvq.adaptive import AdaptiveStep, Travel
from rplvq.averaging import Averaging, Trail
from rplvq.growth import Grow, Prune
from rplvq.heldout import HeldOut, Still
from rplvq.learned import Learned
from rplvq.manifolds.affine_invariant import InverseFactors
from rplvq.manifolds.learned_log_euclidean import MetricPrototypes
from rplvq.steps import State
from rplvq.streaming import Kept, Stream, Young
from rplvq.trainer import Trainer

__all__ = ["fields_of", "known_part", "register_part"]

PartT = TypeVar("PartT", bound=type[Any])


def _shipped() -> dict[str, type]:
    """Attrs classes among the public names of the modules of parts, and what a fitted estimator carries."""
    found: list[type] = [AdaptiveStep, Averaging, Grow, HeldOut, InverseFactors, Kept, Learned, MetricPrototypes, Prune]
    found += [State, Still, Stream, Trail, Trainer, Travel, Young]
    for module in (costs, initializers, manifolds, schedules):
        members = [getattr(module, name) for name in module.__all__]
        found += [member for member in members if isinstance(member, type) and attrs.has(member)]
    return {cls.__qualname__: cls for cls in found}


SHIPPED = _shipped()
"""The library's own parts by name."""
_registered: dict[str, type] = {}


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
    >>> from rplvq.persistence import register_part
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
    other = SHIPPED.get(name) or _registered.get(name)
    if other is not None and (name in SHIPPED or other.__module__ != cls.__module__):
        raise ValueError(f"{cls!r} cannot be registered: {other!r} has the name {name!r} already. Rename the class")
    _registered[name] = cls
    return cls


def known_part(name: str) -> type | None:
    """Class of a name, or None."""
    return SHIPPED.get(name) or _registered.get(name)


def fields_of(part: Any) -> dict[str, Any]:
    """Return the constructor arguments of a part by name."""
    cls = type(part)
    if attrs.has(cls):
        return {field.alias or field.name: getattr(part, field.name) for field in attrs.fields(cls) if field.init}
    names = part._fields if isinstance(part, tuple) else cls.__slots__  # type: ignore[attr-defined]
    return {name: getattr(part, name) for name in names}
