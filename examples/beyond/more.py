"""Ways to more from one session's trials: more prototypes or a variance per class, chosen or forced, and votes.

The splits are nine of those of :mod:`examples.beyond.default`, two more of them, the composed problems of
:mod:`examples.beyond.compositions`, 1000 images of CIFAR-10, and new objects of ETH-80. Under each metric "one" is the
default, with one prototype per class. These ways could take its place:

- "two": the default with ``prototypes_per_class=2``;
- "auto": the default with ``prototypes_per_class="auto"``, which takes two where held-out samples clearly prefer them;
- "better on test": whichever of one and two has fewer errors on the test samples. No choice between them can do better;
- "spread": the default with :class:`rplvq.costs.SpreadRSLVQ`, one variance per class, and the most probable class.

A vote is the mean of the probabilities of its members.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

from examples.beyond import default, groups
from examples.beyond.compositions import DATA as COMPOSED
from examples.paper import cifar10
from examples.paper.data import Split, is_available
from examples.paper.runner import Job, Record
from rplvq import RiemannianLVQ
from rplvq.costs import FlatGaussian, RiemannianGaussian, SpreadRSLVQ
from rplvq.protocols import Array

__all__ = ["CHOICES", "METRICS", "NINE", "SIZES", "VOTES", "jobs", "score", "smoke"]

NINE: tuple[tuple[str, Any], ...] = tuple((data, size) for data, own in default.AT_THE_MEAN.items() for size in own)
"""The splits by which a way is judged."""
SIZES = (
    *NINE, ("digits", 200), ("composed", "SynI"), ("composed", "SynII"), ("composed", "digits"), ("airsar", 400),
    ("cifar10", 1000), ("objects", "full256"), ("objects", "mask256"),
    ("grouped", "full256"), ("grouped", "mask256"),
)  # fmt: skip
METRICS = ("affine_invariant", "log_euclidean", "tangent")
CHOICES = ("one", "two", "auto", "better on test", "spread")
VOTES = ("of the metrics", "of the metrics, one and two", "of one and two", "of one and TS + LR")
FILES = default.FILES | {"cifar10": "cifar10_cov9.npz", "objects": "eth80_cov5.npz", "grouped": "eth80_cov5.npz"}
REPETITIONS: dict[Any, int] = {72: 1, "folds": 1}


class Scored(NamedTuple):
    """Predicted classes (M,) and probabilities (M, C) of the test samples, and the fitted classifier."""

    predicted: Array
    proba: Array
    model: Any

    def scores(self, split: Split) -> Record:
        """Return accuracy, log_loss and ece."""
        right = self.predicted == split.y_test
        loss = default.loss_of(self.model, split, self.proba)
        return {"accuracy": float(right.mean()), "log_loss": loss, "ece": default.calibration_error(self.proba, right)}


class Trials(NamedTuple):
    """A split, the seed of its fits, and the groups (N,) of its training samples if whole groups are held out."""

    split: Split
    seed: int
    groups: Array | None = None


def splits(data: str, size: Any, repetition: int) -> Iterator[Trials]:
    """Yield the splits of one repetition, with groups for "grouped"."""
    if data == "composed":
        found = [COMPOSED[size](repetition)]
    elif data == "cifar10":
        found = [cifar10.split(size, repetition, n_test=2000)]
    elif data == "objects":
        found = [split for split, _ in groups.splits(size, repetition)]
    elif data == "grouped":
        yield from (Trials(split, repetition, own) for split, own in groups.splits(size, repetition))
        return
    else:
        found = default.splits(data, size, repetition)
    yield from (Trials(split, repetition) for split in found)


def fitted(model: Any, split: Split, **settings: Any) -> Scored:
    """Return the classifier, fitted with the settings and applied to the test samples."""
    model.fit(split.X_train, split.y_train, **settings)
    return Scored(model.predict(split.X_test), model.predict_proba(split.X_test), model)


def spread_cost(metric: str, split: Split) -> SpreadRSLVQ:
    """Return the cost with the variance of each class around its mean."""
    X = split.X_train
    means = RiemannianLVQ(metric, max_epochs=0).fit(X, split.y_train)
    n = X.shape[-1]
    is_complex = np.iscomplexobj(X)
    flat = FlatGaussian(n**2 if is_complex else n * (n + 1) // 2)
    normaliser = RiemannianGaussian(n, hermitian=is_complex) if metric == METRICS[0] else flat
    targets = np.searchsorted(means.classes_, split.y_train)
    return SpreadRSLVQ.from_sqdist(means.transform(X) ** 2, targets, means.state_.labels, normaliser)


def vote(members: Sequence[Scored]) -> Scored:
    """Return the mean of the probabilities of several classifiers."""
    proba = np.mean([member.proba for member in members], axis=0)
    model = members[0].model
    return Scored(model.classes_[proba.argmax(axis=1)], proba, model)


def support_vectors() -> Any:
    """Return a support vector machine in the tangent space, with the defaults of pyRiemann and scikit-learn."""
    from pyriemann.tangentspace import TangentSpace

    return make_pipeline(TangentSpace(), FunctionTransformer(default.as_real), SVC())


def scored(trials: Trials, max_epochs: int) -> Record:
    """Return the scores of all ways on one split, and their prototypes per class."""
    by_metric: list[dict[str, Scored]] = []
    rows: Record = {}
    split = trials.split
    settings = {"max_epochs": max_epochs, "random_state": trials.seed}
    for metric in METRICS:
        ways = {
            "one": RiemannianLVQ(metric, **settings),
            "two": RiemannianLVQ(metric, prototypes_per_class=2, **settings),
            "auto": RiemannianLVQ(metric, prototypes_per_class="auto", **settings),
            "spread": RiemannianLVQ(metric, spread_cost(metric, split), decision="posterior", **settings),
        }
        own = {name: fitted(model, split, groups=trials.groups) for name, model in ways.items()}
        by_metric.append(own)
        wrong = {name: np.mean(way.predicted != split.y_test) for name, way in own.items()}
        better = "two" if wrong["two"] < wrong["one"] else "one"
        for name, way in (own | {"better on test": own[better]}).items():
            per_class = len(way.model.prototypes_) / len(way.model.classes_)
            rows[f"{metric}, {name}"] = way.scores(split) | {"prototypes": per_class}
    ones, twos = ([own[name] for own in by_metric] for name in ("one", "two"))
    linear = fitted(default.tangent_space(), split)
    members = ([*ones], [*ones, *twos], [ones[0], twos[0]], [ones[0], linear])
    for name, group in zip(VOTES, members, strict=True):
        rows[f"vote {name}"] = vote(group).scores(split)
    rows["TS + LR"] = linear.scores(split)
    accuracy = support_vectors().fit(split.X_train, split.y_train).score(split.X_test, split.y_test)
    return rows | {"TS + SVC": {"accuracy": float(accuracy)}}


def score(*, repetition: int, method: str, data: str, size: Any, max_epochs: int = default.EPOCHS) -> Record:
    """Return for each way accuracy, log_loss, ece and prototypes, as means over the splits."""
    del method
    each = [scored(trials, max_epochs) for trials in splits(data, size, repetition)]
    return {
        name: {column: round(float(np.mean([rows[name][column] for rows in each])), 5) for column in first}
        for name, first in each[0].items()
    }


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs, the first repetition of each first; ``quick`` has one of 3 epochs."""
    found = []
    for data, size in SIZES:
        name = size if data == "composed" else data
        if name in FILES and not is_available(FILES[name]):
            continue
        settings = {"data": data, "size": size} | ({"max_epochs": 3} if quick else {})
        n_repetitions = 1 if quick else REPETITIONS.get(size, 5)
        found += [Job(f"more-{data}-{size}", "all", i, settings, score) for i in range(n_repetitions)]
    return sorted(found, key=lambda job: job.repetition)


def smoke() -> list[Job]:
    """Return jobs of seconds: few digits, few epochs."""
    return [Job("more-digits-100", "all", 0, {"data": "digits", "size": 100, "max_epochs": 3}, score)]
