"""The result of a comparison: the scores of every fold, their summary, and tests of the differences."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from itertools import combinations
from os import PathLike
from typing import Any

import attrs
import numpy as np

from rplvq.evaluation._report import as_markdown, as_text
from rplvq.evaluation._significance import corrected_t_p_value, holm, wilcoxon_p_value
from rplvq.io import replace_file
from rplvq.protocols import Array


def _sizes(values: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    return tuple((int(n_train), int(n_test)) for n_train, n_test in values)


def _read_only(values: Any) -> Array:
    array = np.array(values, dtype=float)
    array.setflags(write=False)
    return array


def _in_shape(instance: Any, attribute: attrs.Attribute[Any], value: Array) -> None:
    n_metrics = (len(instance.metrics),) if attribute.name == "scores" else ()
    wanted = (len(instance.names), *n_metrics, len(instance.folds))
    if value.shape != wanted:
        raise ValueError(f"{attribute.name} must have shape {wanted}, got {value.shape}")


@attrs.frozen(eq=False, repr=False)
class Comparison:
    """Scores of several estimators in the same folds, as :func:`rplvq.evaluation.compare` returns them.

    Parameters
    ----------
    names : sequence of str
        Names of the E estimators.
    metrics : sequence of str
        Names of the M metrics; larger is better.
    folds : sequence of (int, int)
        Numbers of training and test samples of the F folds.
    scores : ndarray of shape (E, M, F)
        Score of each estimator by each metric in each fold.
    fit_seconds, predict_seconds : ndarray of shape (E, F)
        Wall time of ``fit`` on the training part and of ``predict`` on the test part.

    Notes
    -----
    The methods take

    metric : str
        One of ``metrics``, by default the first. They raise ValueError if it was not scored.
    folds : bool, default=False
        Whether to use ``fold_rows``, which are all scores, in place of ``rows``, which are the summary.

    Examples
    --------
    >>> scores = [[[0.9, 0.8, 1.0]], [[0.7, 0.7, 0.85]]]
    >>> seconds = np.full((2, 3), 0.5)
    >>> result = Comparison(["a", "b"], ["accuracy"], [(20, 10)] * 3, scores, seconds, seconds)
    >>> print(result)
    2 estimators, 3 folds: mean +- standard deviation of the scores, mean seconds per fold
    <BLANKLINE>
       estimator          accuracy  fit [s]  predict [s]
    1  a          0.9000 +- 0.1000      0.5          0.5
    2  b          0.7500 +- 0.0866      0.5          0.5
    <BLANKLINE>
    accuracy: p-values of Wilcoxon's signed-rank test, with Holm's correction for 1 pair
           1
    2  0.250
    Folds share training data, so these p-values are optimistic; test="corrected_t" allows for that.
    With so few folds none of them can be below 0.25, whatever the scores.
    >>> result.rows[0]["accuracy_mean"], result.p_values(test="wilcoxon")
    (0.9, {('a', 'b'): 0.25})
    """

    names: tuple[str, ...] = attrs.field(converter=tuple[str, ...])
    metrics: tuple[str, ...] = attrs.field(converter=tuple[str, ...])
    folds: tuple[tuple[int, int], ...] = attrs.field(converter=_sizes)
    scores: Array = attrs.field(converter=_read_only, validator=_in_shape)
    fit_seconds: Array = attrs.field(converter=_read_only, validator=_in_shape)
    predict_seconds: Array = attrs.field(converter=_read_only, validator=_in_shape)

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.names)} by {', '.join(self.metrics)} in {len(self.folds)} folds>"

    def __str__(self) -> str:
        return as_text(self)

    def of(self, metric: str) -> Array:
        """Return the scores (E, F) by one metric, with one row per estimator and one column per fold."""
        if metric not in self.metrics:
            raise ValueError(f"metric={metric!r} was not scored; choose from {list(self.metrics)}")
        return np.asarray(self.scores[:, self.metrics.index(metric)])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dict per estimator: estimator, ``<metric>_mean``, ``<metric>_std``, fit_seconds, predict_seconds.

        The standard deviation is that of the sample of folds (ddof=1), and NaN if there is one fold. Seconds are means.
        """
        means = self.scores.mean(axis=2)
        deviations = self.scores.std(axis=2, ddof=1) if len(self.folds) > 1 else np.full(means.shape, np.nan)
        rows: list[dict[str, Any]] = [{"estimator": name} for name in self.names]
        for e, row in enumerate(rows):
            for m, metric in enumerate(self.metrics):
                row |= {f"{metric}_mean": float(means[e, m]), f"{metric}_std": float(deviations[e, m])}
            for key, seconds in (("fit_seconds", self.fit_seconds), ("predict_seconds", self.predict_seconds)):
                row[key] = float(seconds[e].mean())
        return rows

    @property
    def fold_rows(self) -> list[dict[str, Any]]:
        """One dict per estimator and fold: estimator, fold, n_train, n_test, the metrics, seconds."""
        return [
            {"estimator": name, "fold": f, "n_train": n_train, "n_test": n_test}
            | {metric: float(self.scores[e, m, f]) for m, metric in enumerate(self.metrics)}
            | {"fit_seconds": float(self.fit_seconds[e, f]), "predict_seconds": float(self.predict_seconds[e, f])}
            for e, name in enumerate(self.names)
            for f, (n_train, n_test) in enumerate(self.folds)
        ]

    def p_values(
        self, metric: str | None = None, *, test: str = "wilcoxon", correct: bool = True
    ) -> dict[tuple[str, str], float]:
        """Test every pair of estimators for a difference.

        The folds of a cross-validation share training data. Wilcoxon's test assumes that they are independent, so its
        p-values are too small; the corrected t-test of Nadeau and Bengio accounts for the overlap. Neither test says
        anything about other data sets.

        Parameters
        ----------
        test : {"wilcoxon", "corrected_t"}, default="wilcoxon"
            See ``wilcoxon_p_value`` and ``corrected_t_p_value`` in :mod:`rplvq.evaluation`.
        correct : bool, default=True
            Whether to apply Holm's correction for the number of pairs, :func:`rplvq.evaluation.holm`.

        Returns
        -------
        dict of (str, str) to float
            p-value of each pair of names, in the order of ``names``.

        Raises
        ------
        ValueError
            If the metric was not scored, the test is unknown, or there is only one fold.
        """
        if test not in ("wilcoxon", "corrected_t"):
            raise ValueError(f"test must be 'wilcoxon' or 'corrected_t', got {test!r}")
        scores = self.of(self.metrics[0] if metric is None else metric)
        ratio = float(np.mean([n_test / n_train for n_train, n_test in self.folds]))
        pairs = combinations(scores, 2)
        raw = [wilcoxon_p_value(a, b) if test == "wilcoxon" else corrected_t_p_value(a, b, ratio) for a, b in pairs]
        final = holm(raw) if correct else raw
        return {pair: float(p) for pair, p in zip(combinations(self.names, 2), final, strict=True)}

    def to_frame(self, *, folds: bool = False) -> Any:
        """Return the rows as a pandas DataFrame; raise ImportError if pandas is missing."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas; .rows is the same as a list") from error
        return pandas.DataFrame(self.fold_rows if folds else self.rows)

    def to_csv(self, path: str | PathLike[str], *, folds: bool = False) -> None:
        """Write the rows to a CSV file in UTF-8 with a header.

        Parameters
        ----------
        path : path-like
            File to write; an old file is replaced. An OSError is raised if it cannot be written.
        """
        rows = self.fold_rows if folds else self.rows
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        replace_file(path, text.getvalue().encode())

    def to_markdown(self) -> str:
        """Return the rows and the p-values of every metric as Markdown; p-values need two estimators and two folds."""
        return as_markdown(self)
