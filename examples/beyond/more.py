"""Ways to more from one session's trials: more prototypes or a variance per class, chosen or forced, and votes.

The splits are nine of those of :mod:`examples.beyond.default`, two more of them, the composed problems of
:mod:`examples.beyond.compositions`, 1000 images of CIFAR-10, and new objects of ETH-80. Under each metric "one" is the
default, with one prototype per class. Two ways could take its place:

- "two": the default with ``prototypes_per_class=2``;
- "spread": the default with :class:`rplvq.costs.SpreadRSLVQ`, one variance per class, and the most probable class.

They are forced, or chosen by held-out samples:

- "two if recorded lower": if the fit of two records a lower loss of its own choice than that of one. The folds of the
  two fits differ;
- "if lower": if its loss is lower on four folds on which both are judged in pairs;
- "if clear": if on these folds the loss is lower by two standard errors and the error is lower. These are the
  conditions on which the default trains at all;
- "doubled while clear": four if it is clearly better than two, which is clearly better than one, and so on;
- "doubled or spread": that, or spread if it is clear and has a lower loss;
- "better on test": whichever of one and two has fewer errors on the test samples. No choice between them can do better.

A vote is the mean of the probabilities of its members.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

from examples.beyond import default, groups
from examples.beyond.compositions import DATA as COMPOSED
from examples.paper import cifar10
from examples.paper.data import Split, is_available
from examples.paper.runner import Job, Record
from rplvq import DiscriminantMeans, HeldOut, RiemannianLVQ, Share
from rplvq.costs import FlatGaussian, RiemannianGaussian, SpreadRSLVQ, calibrated_loss, sample_losses
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
CHOICES = (
    "one", "two", "two if recorded lower", "two if lower", "two if clear", "better on test", "spread",
    "spread if lower", "spread if clear", "doubled while clear", "doubled or spread",
)  # fmt: skip
VOTES = ("of the metrics", "of the metrics, one and two", "of one and two", "of one and TS + LR")
FILES = default.FILES | {"cifar10": "cifar10_cov9.npz", "objects": "eth80_cov5.npz", "grouped": "eth80_cov5.npz"}
REPETITIONS: dict[Any, int] = {72: 1, "folds": 1}
N_FOLDS = 4
TRIAL_EPOCHS = 4
"""Folds and epochs of the trials, as in the library."""
AMOUNT = 3.0
"""Amount of training of the trials, as in the library."""
CLEAR = 2.0
"""Number of standard errors by which a loss is clearly lower, as in the library."""


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
    """A split, the seed of its folds, and the groups (N,) of its training samples if the folds are groups."""

    split: Split
    seed: int
    groups: Array | None = None

    def folds(self) -> Iterator[tuple[Array, Array]]:
        """Yield the indices that train and those that are held out."""
        deal = StratifiedKFold if self.groups is None else StratifiedGroupKFold
        dealt = deal(N_FOLDS, shuffle=True, random_state=self.seed)
        yield from dealt.split(self.split.X_train, self.split.y_train, self.groups)

    def standard_error(self, gain: Array) -> float:
        """Return the standard error of the mean of values (N,), which is that over the groups if there are any."""
        rest = gain - gain.mean()
        error = float(np.linalg.norm(rest)) / len(gain)
        if self.groups is None:
            return error
        sums = np.bincount(np.unique(self.groups, return_inverse=True)[1], rest)
        return max(error, float(np.linalg.norm(sums)) * np.sqrt(len(sums) / (len(sums) - 1)) / len(gain))


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


def held_out(model: RiemannianLVQ, trials: Trials) -> tuple[Array, Array]:
    """Return losses and errors (N,) of the training samples, from trials that leave out one of four folds.

    The trials do what the fitted ``model`` chose: they train, or they take the class means or the discriminant. They
    have its cost, so that variances per class are those of all training samples.
    """
    split = trials.split
    trial = clone(model).set_params(sigma2=HeldOut(("auto",)), step_size=Share(amount=AMOUNT))
    trial.set_params(max_epochs=min(TRIAL_EPOCHS, model.max_epochs) if model.choice_.trains else 0)
    if model.choice_.chosen == "discriminant":
        trial.set_params(init=DiscriminantMeans())
    wrong = np.empty(len(split.y_train))
    distances = np.empty((len(wrong), len(model.prototypes_)))
    for kept, held in trials.folds():
        trial.fit(split.X_train[kept], split.y_train[kept])
        distances[held] = trial.transform(split.X_train[held]) ** 2
        wrong[held] = trial.predict(split.X_train[held]) != split.y_train[held]
    judge = trial.trainer_.cost, distances, np.searchsorted(trial.classes_, split.y_train), trial.state_.labels
    _, sigma2 = calibrated_loss(*judge, trial.sigma2_)
    return sample_losses(*judge, sigma2), wrong


def is_clear(judged: tuple[Array, Array], other: tuple[Array, Array], trials: Trials) -> bool:
    """Whether losses and errors (N,) are clearly lower than others of the same samples."""
    gain = other[0] - judged[0]
    has_fewer = judged[1].mean() < other[1].mean()
    return bool(has_fewer and gain.mean() > CLEAR * trials.standard_error(gain))


def chosen(ways: dict[str, Scored], trials: Trials) -> dict[str, Scored]:
    """Return for each of :data:`CHOICES` the classifier that it takes, from the ``ways`` "one", "two" and "spread"."""
    judged = {name: held_out(way.model, trials) for name, way in ways.items()}
    losses = {name: float(own[0].mean()) for name, own in judged.items()}
    recorded = {name: way.model.choice_.tried[way.model.choice_.winner].loss for name, way in ways.items()}
    wrong = {name: np.mean(way.predicted != trials.split.y_test) for name, way in ways.items()}
    one = ways["one"]
    two = ways["two"]
    spread = ways["spread"]
    found = {
        **ways,
        "two if recorded lower": two if recorded["two"] < recorded["one"] else one,
        "two if lower": two if losses["two"] < losses["one"] else one,
        "two if clear": two if is_clear(judged["two"], judged["one"], trials) else one,
        "better on test": two if wrong["two"] < wrong["one"] else one,
        "spread if lower": spread if losses["spread"] < losses["one"] else one,
        "spread if clear": spread if is_clear(judged["spread"], judged["one"], trials) else one,
    }
    doubled = one
    loss = losses["one"]
    if found["two if clear"] is two:
        doubled, loss = doubled_from(two, judged["two"], trials)
    takes_spread = found["spread if clear"] is spread and losses["spread"] < loss
    return found | {"doubled while clear": doubled, "doubled or spread": spread if takes_spread else doubled}


def doubled_from(before: Scored, judged: tuple[Array, Array], trials: Trials) -> tuple[Scored, float]:
    """Return the classifier with so many prototypes that twice as many are not clearly better, and its held-out loss.

    ``judged`` are losses and errors of the classifier to begin with. A class keeps one more sample than prototypes.
    """
    count = 2 * before.model.prototypes_per_class
    if count >= (1 - 1 / N_FOLDS) * np.unique(trials.split.y_train, return_counts=True)[1].min():
        return before, float(judged[0].mean())
    after = fitted(clone(before.model).set_params(prototypes_per_class=count), trials.split, groups=trials.groups)
    other = held_out(after.model, trials)
    return doubled_from(after, other, trials) if is_clear(other, judged, trials) else (before, float(judged[0].mean()))


def support_vectors() -> Any:
    """Return a support vector machine in the tangent space, with the defaults of pyRiemann and scikit-learn."""
    from pyriemann.tangentspace import TangentSpace

    return make_pipeline(TangentSpace(), FunctionTransformer(default.as_real), SVC())


def scored(trials: Trials, max_epochs: int) -> Record:
    """Return the scores of all ways on one split, the prototypes per class, and whether it is the way "spread"."""
    by_metric: list[dict[str, Scored]] = []
    rows: Record = {}
    split = trials.split
    settings = {"max_epochs": max_epochs, "random_state": trials.seed}
    for metric in METRICS:
        ways = {
            "one": RiemannianLVQ(metric, **settings),
            "two": RiemannianLVQ(metric, prototypes_per_class=2, **settings),
            "spread": RiemannianLVQ(metric, spread_cost(metric, split), decision="posterior", **settings),
        }
        own = {name: fitted(model, split, groups=trials.groups) for name, model in ways.items()}
        by_metric.append(own)
        for name, way in chosen(own, trials).items():
            taken = {"prototypes": way.model.prototypes_per_class, "is_spread": float(way is own["spread"])}
            rows[f"{metric}, {name}"] = way.scores(split) | taken
    ones, twos = ([own[name] for own in by_metric] for name in ("one", "two"))
    linear = fitted(default.tangent_space(), split)
    members = ([*ones], [*ones, *twos], [ones[0], twos[0]], [ones[0], linear])
    for name, group in zip(VOTES, members, strict=True):
        rows[f"vote {name}"] = vote(group).scores(split)
    rows["TS + LR"] = linear.scores(split)
    accuracy = support_vectors().fit(split.X_train, split.y_train).score(split.X_test, split.y_test)
    return rows | {"TS + SVC": {"accuracy": float(accuracy)}}


def score(*, repetition: int, method: str, data: str, size: Any, max_epochs: int = default.EPOCHS) -> Record:
    """Return for each way accuracy, log_loss, ece, prototypes and is_spread, as means over the splits."""
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
