"""Warnings of the library, by name, so that programs can filter them or turn them into errors."""

from __future__ import annotations

__all__ = ["DivergenceWarning", "TrainingInterruptedWarning"]


class TrainingInterruptedWarning(UserWarning):
    """Training was interrupted (Ctrl-C); the model is that of the last whole epoch.

    The model is complete before the warning is given, also where warnings are errors.

    Examples
    --------
    >>> issubclass(TrainingInterruptedWarning, UserWarning)
    True
    """


class DivergenceWarning(UserWarning):
    """Training ended with finite numbers that mean little; the warning says why and what helps.

    Either a prototype is at the edge of the manifold, singular to rounding, or most steps were cut to their caps.
    The model is complete before the warning is given. (A cost that is not finite is a FloatingPointError, and the
    model is what it was before.)

    Examples
    --------
    >>> import warnings
    >>> from rplvq import RiemannianLVQ
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = RiemannianLVQ("euclidean_vectors", step_size=50.0, sigma2=0.01, max_epochs=3, random_state=0)
    ...     model = model.fit([[0.0], [1.1], [0.9], [2.0]], [0, 0, 1, 1])
    >>> caught[0].category is DivergenceWarning
    True
    """
