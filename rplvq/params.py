"""scikit-learn parameters that reach into frozen parts: ``sigma2__start``, ``manifold__tau``, ``cost__priors``."""

from __future__ import annotations

from typing import Any, Self

import attrs
from sklearn.base import BaseEstimator

__all__ = ["PartsMixin"]


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
