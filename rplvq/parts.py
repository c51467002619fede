"""Parts are the objects that users combine: manifolds, costs, schedules, initializers and the like.

This module checks their parameters, gives scikit-learn access to their fields (``sigma2__start``), and keeps the
registry of the classes that model files may name.
"""

import difflib
import importlib
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from inspect import signature
from numbers import Real
from types import MappingProxyType
from typing import Any, NamedTuple, Self, TypeAlias, TypeVar, cast

import attrs
import numpy as np
from sklearn.base import BaseEstimator

MANIFOLD_METHODS = {
    "encode": "checks points and changes their coordinates",
    "decode": "changes codes back to points",
    "sqdist": "gives squared distances of shape (B, K)",
    "connect": "gives an object with the field sqdist and what move needs",
    "move": "moves prototypes by weights of shape (B, K)",
}
"""The methods of a manifold, and what each of them is for."""
CALLED_WITH = {
    "a Cost": ("sqdist", "targets", "labels", "sigma2"),
    "an Initializer": ("manifold", "codes", "targets", "n_classes", "rng"),
    "growth": ("window",),
    "callbacks": ("report",),
}
"""Arguments of parts that are called, by kind, or by the parameter that holds them."""
ValueT = TypeVar("ValueT")
PartT = TypeVar("PartT", bound=type)
FunctionT = TypeVar("FunctionT", bound=Callable[..., object])
Validator: TypeAlias = Callable[[object, "attrs.Attribute[Any]", Any], object]
_LATE: dict[str, str] = {}
_SHIPPED: dict[str, type] = {}
_REGISTERED: dict[str, type] = {}


def _fields(part: object) -> dict[str, object]:
    """Return the settable fields of an attrs instance by name; nothing for any other object."""
    return fields_of(part) if attrs.has(type(part)) else {}


def _nested_fields(part: object, name: str) -> dict[str, object]:
    """Return ``name__field`` for the fields of a part, and of the parts among them."""
    nested: dict[str, object] = {}
    for field, value in _fields(part).items():
        path = f"{name}__{field}"
        nested |= {path: value} | _nested_fields(value, path)
    return nested


def _with_fields(part: Any, name: str, values: dict[str, object]) -> Any:
    """Return a copy of a part with new values by ``field`` or ``field__field``; raise ValueError at an unknown one."""
    fields = _fields(part)
    new = {}
    nested: dict[str, dict[str, object]] = {}
    for path, value in values.items():
        field, is_nested, rest = path.partition("__")
        if field not in fields:
            known = f"its fields are {list(fields)}" if fields else "it has no fields to set"
            raise ValueError(f"Invalid parameter '{name}__{path}': {name} is {part!r}, and {known}")
        if is_nested:
            nested.setdefault(field, {})[rest] = value
        else:
            new[field] = value
    for field, inner in nested.items():
        new[field] = _with_fields(new.get(field, fields[field]), f"{name}__{field}", inner)
    return attrs.evolve(part, **new)


class PartsMixin(BaseEstimator):
    """Gives an estimator parameters ``name__field`` for the fields of its parts; setting one replaces the part."""

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Return the parameters by name; if ``deep``, also ``name__field`` of parts and of nested estimators."""
        params: dict[str, object] = super().get_params(deep=deep)
        if deep:
            for name in list(super().get_params(deep=False)):
                params |= _nested_fields(params[name], name)
        return params

    def set_params(self, **params: object) -> Self:
        """Set ``params`` by name, ``name__field`` for a field of a part; nothing changes if one of them is invalid.

        ValueError is raised if a parameter or field does not exist, or if a part refuses a value.

        Examples
        --------
        >>> from rplvq import Annealed, RiemannianLVQ
        >>> RiemannianLVQ(sigma2=Annealed(2.0)).set_params(sigma2__start=1.0).get_params()["sigma2__start"]
        1.0
        """
        own = super().get_params(deep=False)
        whole = {name: value for name, value in params.items() if name in own}
        changes: dict[str, dict[str, object]] = {}
        rest = {}
        for key, value in params.items():
            name, _, field = key.partition("__")
            if key in own:
                continue
            if name in own and not hasattr(whole.get(name, own[name]), "set_params"):  # estimators set their own
                changes.setdefault(name, {})[field] = value
            else:
                rest[key] = value
        for name, values in changes.items():
            whole[name] = _with_fields(whole.get(name, own[name]), name, values)
        if rest:  # what belongs to nested estimators
            super().set_params(**rest)
        for name, value in whole.items():
            setattr(self, name, value)
        return self


def plain_name(value: str) -> str:
    """Return a name as the tables of names spell it: in lower case, and with ``_`` for ``-``."""
    return value.lower().replace("-", "_")


def by_plain_name(value: str, table: Mapping[str, ValueT], argument: str) -> ValueT:
    """Return the entry of a table for a name, spelled in any way that :func:`plain_name` knows; else ValueError.

    The error names the ``argument`` and all entries, and suggests a near one.
    """
    name = plain_name(value)
    if name not in table:
        nearest = difflib.get_close_matches(name, table, n=1)
        hint = f"did you mean {nearest[0]!r}? Else " if nearest else ""
        raise ValueError(f"{argument}={value!r} is not known; {hint}choose from {sorted(table)} or pass an object")
    return table[name]


def require_count(name: str, value: object, minimum: int) -> None:
    """Raise ValueError unless ``value`` is an integer of at least ``minimum``."""
    # True is an int in Python.
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < minimum:
        raise ValueError(f"{name} must be an integer of at least {minimum}, got {value!r}")


def plain(value: object) -> Any:
    """Return an integer of NumPy as one of Python, which does not overflow, and anything else as it is."""
    return int(value) if isinstance(value, np.integer) else value


def by_name(check: Callable[[str, Any], object], *, or_none: bool = False) -> Validator:
    """Return the attrs validator that calls ``check(name, value)``; if ``or_none``, it accepts None."""
    return lambda _, attribute, value: None if or_none and value is None else check(attribute.name, value)


def count_from(minimum: int, *, or_none: bool = False) -> Validator:
    """Return an attrs validator for integers of at least ``minimum``, or None if ``or_none``."""
    return by_name(lambda name, value: require_count(name, value, minimum), or_none=or_none)


def require_number(
    name: str, value: object, low: float = 0.0, high: float = math.inf, *, closed: bool = False, finite: bool = False,
    words: str = "",
) -> None:  # fmt: skip
    """Raise ValueError unless a real number is above ``low`` and below ``high``, if this is not infinite.

    ``low`` itself is accepted if ``closed``, and no infinity if ``finite``. ``words`` name what else may be given.
    """
    try:
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:  # an integer above 1e308
        number = math.nan
    if low <= number <= high and (closed or number != low) and (number < high or not (finite or high < math.inf)):
        return
    if high < math.inf:
        wanted = f"a number from {low:g} to below {high:g}" if closed else f"a number between {low:g} and {high:g}"
    else:
        wanted = f"a number of at least {low:g}" if closed else f"a number above {low:g}"
    wanted = wanted.replace("a number above 0", "a positive number") + words
    wanted = wanted.replace("number", "finite number") if finite else wanted
    raise ValueError(f"{name} must be {wanted}, got {value!r}")


def number_in(low: float = 0.0, high: float = math.inf, *, or_none: bool = False, **options: bool) -> Validator:
    """Return an attrs validator by :func:`require_number`, which accepts None, too, if ``or_none``."""
    words = " or None" if or_none else ""
    return by_name(lambda name, value: require_number(name, value, low, high, words=words, **options), or_none=or_none)


def require_jobs(name: str, value: object) -> None:
    """Raise ValueError unless ``value`` is a number of threads: None or an integer other than 0."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value == 0):
        raise ValueError(f"{name} must be an integer other than 0, or None, got {value!r}")


def what_lacks(value: object, methods: Iterable[str]) -> str:
    """Return why ``value`` is no instance with these methods, or "" if it is one."""
    if isinstance(value, type):
        return "it is a class, pass an instance"
    missing = [method for method in methods if not callable(getattr(value, method, None))]
    told = [f"{name} ({MANIFOLD_METHODS[name]})" if name in MANIFOLD_METHODS else name for name in missing]
    return f"it lacks {', '.join(told)}" if told else ""


def what_refuses(part: Callable[..., object], arguments: tuple[str, ...]) -> str:
    """Return why a part of the user's own cannot be called with these arguments by position, or "" if it can."""
    if known_part(type(part).__name__) is type(part):
        return ""
    try:
        signature(part).bind(*arguments)
    except TypeError as error:
        return f"it is called with ({', '.join(arguments)}), but has {error}"
    except ValueError:  # a function of C need not state its signature
        pass
    return ""


def require_methods(name: str, value: object, methods: Iterable[str], kind: str) -> None:
    """Raise ValueError unless ``value`` is an instance with these methods; ``kind`` says what it should be."""
    why = what_lacks(value, methods)
    if not why and kind in CALLED_WITH:
        why = what_refuses(cast(Callable[..., object], value), CALLED_WITH[kind])
    if why:
        raise ValueError(f"{name}={value!r} is not {kind}: {why}")


def offers(kind: str, *methods: str, or_none: bool = False) -> Validator:
    """Return an attrs validator for instances with these methods, and None if ``or_none``."""
    return by_name(lambda name, value: require_methods(name, value, methods, kind), or_none=or_none)


def callables(name: str, value: object) -> tuple[Callable[..., Any], ...]:
    """Return a list of callables, or None, as a tuple; raise ValueError at anything else."""
    if value is not None and not isinstance(value, (list, tuple)):
        raise ValueError(f"{name} must be a list or a tuple of callables, got {value!r}")
    for index, item in enumerate(value or ()):
        if not callable(item):
            raise ValueError(f"{name}[{index}] is {item!r}, which cannot be called")
        if why := what_refuses(item, CALLED_WITH[name]):
            raise ValueError(f"{name}[{index}]={item!r}: {why}")
    return tuple(value or ())


def one_of(*options: object) -> Validator:
    """Return an attrs validator for these strings and booleans."""

    def check(name: str, value: object) -> None:
        # By identity, because 1 equals True.
        if not any(value is option or (isinstance(value, str) and value == option) for option in options):
            wanted = f"{', '.join(map(repr, options[:-1]))} or {options[-1]!r}"
            raise ValueError(f"{name} must be {wanted}, got {value!r}")

    return by_name(check)


class Saved(NamedTuple):
    """An estimator class that model files may hold."""

    cls: type
    check: Callable[[Any], object] = bool  # raises ValueError or AttributeError unless a fit leaves such an estimator
    left_out: Mapping[str, object] = MappingProxyType({})  # parameters that no file holds, with what takes their place
    answers: Callable[[Any], list[Any]] = lambda _: []  # arrays that depend on each fitted attribute that predicts


_ESTIMATORS: dict[str, Saved] = {}


def library_part(cls: PartT) -> PartT:
    """Class decorator: register a class of the library, because model files name only classes that are registered."""
    _SHIPPED[cls.__qualname__] = cls
    return cls


def library_estimator(*fields: Any, **named: Any) -> Callable[[PartT], PartT]:
    """Return a class decorator: register it as :class:`Saved` with these fields, so that model files may hold it."""

    def register(cls: PartT) -> PartT:
        _ESTIMATORS[cls.__qualname__] = Saved(cls, *fields, **named)
        return cls

    return register


def late_estimators(module: str, *names: str) -> None:
    """Register estimator classes by name, for which ``module`` is imported as soon as a model file needs them."""
    _LATE.update(dict.fromkeys(names, module))


def saved_estimator(name: str) -> Saved:
    """Return what is registered for an estimator class that a model file names; raise ValueError if it is unknown."""
    if name not in _ESTIMATORS and name in _LATE:
        importlib.import_module(_LATE[name])  # its decorators register it
    if name not in _ESTIMATORS:
        remedy = "import the module of your own first that decorates it with rplvq.parts.register_part"
        raise ValueError(f"the file holds an estimator {name!r}, which is not known here: {remedy}")
    return _ESTIMATORS[name]


def is_saved_estimator(cls: type) -> bool:
    """Whether a model file can hold this estimator class; it holds subclasses only if they are registered, too."""
    name = cls.__qualname__
    return (name in _ESTIMATORS or name in _LATE) and saved_estimator(name).cls is cls


def trusted_types() -> list[str]:
    """Return the names of all classes of this library that a pipeline may hold.

    ``skops.io.load(path, trusted=trusted_types())`` reads a file that ``skops.io.dump`` wrote; add what you trust of
    ``skops.io.get_untrusted_types(file=path)`` that the list lacks.
    """
    for name in _LATE:  # imports their modules
        saved_estimator(name)
    classes = [*_SHIPPED.values(), *(saved.cls for saved in _ESTIMATORS.values())]
    return sorted({f"{cls.__module__}.{cls.__qualname__}" for cls in classes})


def library_version() -> str:
    """Return the version that the root of the package states, without an import of the root, which imports this."""
    return str(sys.modules[__name__.partition(".")[0]].__version__)


def register_part(cls: PartT) -> PartT:
    """Class decorator for parts and estimators of your own, so that models with them can be saved.

    The file names the class by its qualified name (``__qualname__``). A program that loads the model must define and
    register the class first. Registering a class of the same module and name again replaces it. ValueError is raised at
    what is neither an attrs class nor an estimator, and if another class has the name.

    Parameters
    ----------
    cls : type
        An attrs class whose fields are numbers, strings, arrays, lists, tuples, dicts or other parts. Or an estimator
        class of scikit-learn's kind, such as a step of a pipeline, whose parameters and fitted attributes are such
        values. It may be of another library: ``register_part(StandardScaler)``.

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
    if isinstance(cls, type) and issubclass(cls, BaseEstimator):
        return _register_estimator(cls)
    is_attrs: bool = isinstance(cls, type) and attrs.has(cls)  # a plain bool: attrs.has narrows the type of cls
    if not is_attrs:
        raise ValueError(f"register_part takes a class of attrs, got {cls!r}: decorate it with @attrs.frozen first")
    name = cls.__qualname__
    other = known_part(name)
    if other is not None and (name in _SHIPPED or other.__module__ != cls.__module__):
        raise ValueError(f"{cls!r} cannot be registered: {other!r} has the name {name!r} already. Rename the class")
    _REGISTERED[name] = cls
    return cls


def _register_estimator(cls: PartT) -> PartT:
    """Register an estimator class of a user; a subclass of a registered class is checked as that class is."""
    name = cls.__qualname__
    other = _ESTIMATORS[name].cls if name in _ESTIMATORS else cls
    if name in _LATE or other.__module__ != cls.__module__:
        raise ValueError(f"{cls!r} cannot be registered: an estimator has the name {name!r} already. Rename the class")
    bases = (_ESTIMATORS[base.__qualname__] for base in cls.__mro__[1:] if is_saved_estimator(base))
    _ESTIMATORS[name] = next(bases, Saved(cls))._replace(cls=cls)
    return cls


def has_kernel(*kernels: str) -> Callable[[FunctionT], FunctionT]:
    """Mark a method with the names of the compiled kernels that do the same.

    A subclass that overrides the method, and a wrapper that calls it, are not marked: see :func:`kernel_of`.
    """

    def mark(function: FunctionT) -> FunctionT:
        function.kernels = frozenset(kernels)  # type: ignore[attr-defined]
        return function

    return mark


def kernel_of(part: object, *methods: str) -> str | None:
    """Return the name of the compiled kernel that does the same as these methods of a part, or None."""
    marks: list[frozenset[str]] = [getattr(getattr(part, name, None), "kernels", frozenset()) for name in methods]
    return next(iter(frozenset.intersection(*marks)), None)  # a metric may share connect with others, but not move


def known_part(name: str) -> type | None:
    """Return the registered class of this name, or None."""
    return _SHIPPED.get(name) or _REGISTERED.get(name)


def fields_of(part: object) -> dict[str, Any]:
    """Return the constructor arguments of a part by name."""
    cls = type(part)
    if attrs.has(cls):
        return {field.alias or field.name: getattr(part, field.name) for field in attrs.fields(cls) if field.init}
    return {name: getattr(part, name) for name in signature(cls).parameters}
