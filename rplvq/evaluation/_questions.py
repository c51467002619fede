"""What a comparison was made to find out: which pairs of estimators answer it, and the answer as a sentence."""

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Literal, NamedTuple

from sklearn.base import BaseEstimator

from rplvq.estimators import manifold_of
from rplvq.evaluation._significance import Row

LEVEL = 0.05
MOST_CLAUSES = 3
ANSWERS = {
    "training": (
        "{What} helped over the class means (MDM)",
        "{What} harmed compared with the class means (MDM)",
        "Whether {what} helped over the class means (MDM) remains open, because no difference is significant",
        "{What} helped over the class means (MDM) in {better} of {all} cases, harmed in {worse}, and the others are "
        "not significant",
    ),
    "metric": (
        "The metrics differ",
        "The metrics differ",
        "No difference between the metrics was found",
        "The metrics differ significantly in {different} of {all} pairs",
    ),
    "other": (
        "The trained prototypes are better than the other classifiers",
        "The trained prototypes are worse than the other classifiers",
        "No difference between the trained prototypes and the other classifiers was found",
        "Against the other classifiers the trained prototypes are better in {better} of {all} pairs, worse in {worse}, "
        "and the others are not significant",
    ),
    "best": (
        "The best mean is significantly above all others",
        "",
        "The best mean is not significantly above any other",
        "The best mean is significantly above {better} of {all} others",
    ),
}
"""Beginnings of the sentences if all first estimators are significantly better, all worse, none different, or mixed."""


class Question(NamedTuple):
    """A ``topic``, and the ``pairs`` of names of estimators, (first, second), whose differences answer it.

    The topic "training" stands for trained prototypes against the class means of the same metric, "metric" for metrics
    against each other, and "other" for trained prototypes against classifiers of other kinds.
    """

    topic: str
    pairs: tuple[tuple[str, str], ...]


def find_questions(named: Mapping[str, BaseEstimator]) -> tuple[Question, ...]:
    """Find the questions that estimators by name can answer, from their parameters ``metric`` and ``max_epochs``."""
    params = {name: estimator.get_params(deep=False) for name, estimator in named.items()}
    ours = {name: own for name, own in params.items() if {"metric", "cost", "max_epochs"} <= own.keys()}
    metric = {name: _metric(named[name]) for name in ours}
    trained = [name for name, own in ours.items() if own["max_epochs"] != 0]
    means = [name for name in ours if name not in trained]
    # Two metrics are compared by models that differ in nothing else.
    alike = {name: [repr(ours[name].get(key)) for key in ("cost", "prototypes_per_class")] for name in trained}
    pairs = {
        "training": [(a, b) for a, b in product(trained, means) if metric[a] == metric[b]],
        "metric": [(a, b) for a, b in combinations(trained, 2) if metric[a] != metric[b] and alike[a] == alike[b]],
        "other": list(product(trained, [name for name in named if name not in ours])),
    }
    return tuple(Question(topic, tuple(own)) for topic, own in pairs.items() if own)


def _metric(estimator: BaseEstimator) -> str:
    """Return one text for all names of the metric of an estimator; ``fit`` refuses a value that is none."""
    try:
        return repr(manifold_of(estimator))
    except (ValueError, TypeError):
        return repr(estimator)


def answer(topic: str, differences: Sequence[Row], what: Literal["training", "choice"] = "training") -> str:
    """Answer a question by rows of :meth:`Comparison.differences`; of more than three, only the largest is named.

    ``what`` is what made the prototypes: training in all folds, or in each fold the choice on held-out samples.
    """
    better = sum(row["p"] < LEVEL and row["difference"] > 0 for row in differences)
    worse = sum(row["p"] < LEVEL and row["difference"] < 0 for row in differences)
    cases = {(len(differences), 0): 0, (0, len(differences)): 1, (0, 0): 2}
    counts = {"better": better, "worse": worse, "different": better + worse, "all": len(differences)}
    subject = "training" if what == "training" else "the choice on held-out samples, which did not always train,"
    words = counts | {"what": subject, "What": subject[0].upper() + subject[1:]}
    begin = ANSWERS[topic][cases.get((better, worse), 3)].format(**words)
    if len(differences) <= MOST_CLAUSES:
        return f"{begin}: {'; '.join(map(_clause, differences))}."
    largest = max(differences, key=lambda row: abs(row["difference"]))
    return f"{begin}. The largest of the {len(differences)} differences: {_clause(largest)}."


def _clause(row: Row) -> str:
    first = f"{row['metric']} {row['first_mean']:.4f} of {row['first']}"
    scores = f"{first} against {row['second_mean']:.4f} of {row['second']}"
    interval = f"95% confidence interval {row['ci_low']:+.4f} to {row['ci_high']:+.4f}"
    return f"{scores}, difference {row['difference']:+.4f} ({interval}, {p_text(row['p'], 'p')})"


def p_text(p: float, name: str = "") -> str:
    """Return a p-value with three digits, never as zero, as ``p = 0.012`` if a name is given."""
    if p < 0.001:
        return f"{name} < 0.001" if name else "<0.001"
    return f"{name} = {p:.3f}" if name else f"{p:.3f}"
