"""What the library raises and warns, by name, so that programs can filter it, catch it or turn it into errors."""

from __future__ import annotations

__all__ = ["DivergenceWarning", "ModelFileError", "PointError", "TrainingInterruptedWarning"]


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


class PointError(ValueError):
    """A point that is not on the manifold.

    Parameters
    ----------
    index : int
        First offending index along the batch axis.
    reason : str
        What is wrong, beginning with a verb, and what can be done.
    name : str, default="X"
        The argument that holds the point.

    Examples
    --------
    >>> str(PointError(3, "is not square"))
    'X[3] is not square'
    """

    def __init__(self, index: int, reason: str, name: str = "X") -> None:
        super().__init__(index, reason, name)
        self.index, self.reason, self.name = index, reason, name

    def __str__(self) -> str:
        return f"{self.name}[{self.index}] {self.reason}"

    def renamed(self, name: str) -> PointError:
        """Return the same complaint about another argument."""
        return PointError(self.index, self.reason, name)

    def shifted(self, start: int) -> PointError:
        """Return the same complaint about a point of a larger array, of which this part begins at ``start``."""
        return PointError(self.index + start, self.reason, self.name)


class ModelFileError(ValueError):
    """A file that is not a whole model or checkpoint of a format known here: damaged, newer, or another thing.

    Examples
    --------
    >>> issubclass(ModelFileError, ValueError)
    True
    """
