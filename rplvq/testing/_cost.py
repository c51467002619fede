"""The check of a cost, with one function per promise."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rplvq.capabilities import Probabilistic, provides
from rplvq.costs import evaluate
from rplvq.protocols import Array, Cost, Evaluation
from rplvq.testing._agreement import agree, pickled, require


class Case(NamedTuple):
    """The distances of B samples to K prototypes, and the value of the cost there."""

    cost: Cost
    sqdist: Array  # (B, K)
    targets: Array  # (B,) or (B, C)
    labels: Array  # (K,)
    sigma2: float
    loss: Array  # (B,)
    slope: Array  # (B, K)

    def at(self, sqdist: Array, targets: Array | None = None, labels: Array | None = None) -> Evaluation:
        """Evaluate the cost at other distances, targets or labels."""
        targets = self.targets if targets is None else targets
        return as_promised(self.cost, sqdist, targets, self.labels if labels is None else labels, self.sigma2)


def check_cost(
    cost: Cost, *, n_classes: int = 3, sigma2: float = 0.7, pickling: bool = True, random_state: int = 0
) -> None:
    """Check that a cost keeps the promises of :class:`rplvq.protocols.Cost`.

    Targets are class indices, then class probabilities, which a cost may refuse by ValueError. Classes have one or more
    prototypes. Tested are the shapes, ``slope[b, k] = d loss[b] / d sqdist[b, k]`` by central differences, finite
    values at the distance 0 and at huge ones, independent samples, any order of prototypes, unchanged inputs, and that
    a posterior sums to one. AssertionError is raised at the first broken promise, and ValueError if the cost refuses
    class indices, or at less than two classes.

    Parameters
    ----------
    cost : Cost
        The part to check.
    n_classes : int, default=3
        Number of classes C, at least 2, which must be that of the cost if its priors or other parameters fix one.
    sigma2 : float, default=0.7
        Variance at which the cost is evaluated; squared distances are between 0.1 and 6.
    pickling : bool, default=True
        Whether the part must be picklable; a class defined in a function or doctest is not.
    random_state : int, default=0
        Seed of the distances and targets.

    Examples
    --------
    >>> from rplvq.protocols import Evaluation
    >>> class OwnClassDistance:
    ...     def __call__(self, sqdist, targets, labels, sigma2):
    ...         own = (labels == targets[:, None]) if targets.ndim == 1 else targets[:, labels]
    ...         return Evaluation((own * sqdist).sum(axis=1) / sigma2, own / sigma2)
    >>> check_cost(OwnClassDistance(), pickling=False)
    """
    if n_classes < 2:
        raise ValueError(f"n_classes must be at least 2, got {n_classes}")
    rng = np.random.default_rng(random_state)
    for case in cases(cost, n_classes, sigma2, rng):
        for promise in PROMISES:
            promise(case)
        if pickling:
            again = case._replace(cost=pickled(cost, "a cost")).at(case.sqdist)
            agree(again.loss, case.loss, 1, "a cost must give the same loss after pickling")


def cases(cost: Cost, n_classes: int, sigma2: float, rng: np.random.Generator) -> Iterator[Case]:
    """Yield a case for every combination of targets (indices, probabilities) and numbers of prototypes per class."""
    several = np.repeat(np.arange(n_classes), np.arange(n_classes) + 1)
    hard = np.arange(2 * n_classes) % n_classes
    soft = rng.dirichlet(np.ones(n_classes), size=len(hard))
    for labels in (np.arange(n_classes), np.repeat(np.arange(n_classes), 2), several):
        for targets in (hard, soft):
            sqdist = rng.uniform(0.1, 6.0, (len(hard), len(labels)))
            copies = (sqdist.copy(), targets.copy(), labels.copy())
            try:
                values = as_promised(cost, *copies, sigma2)
            except ValueError:
                if targets is soft:
                    continue
                raise
            kept = all(map(np.array_equal, copies, (sqdist, targets, labels)))
            require(kept, "a cost must not write into sqdist, targets or labels")
            check_evaluation(values, "at ordinary distances")
            yield Case(cost, sqdist, targets, labels, sigma2, values.loss, values.slope)


def as_promised(cost: Cost, sqdist: Array, targets: Array, labels: Array, sigma2: float) -> Evaluation:
    """Evaluate a cost; require that it returns loss and slope, of the shapes (B,) and (B, K) at class indices."""
    try:
        return evaluate(cost, sqdist, targets, labels, sigma2)
    except TypeError as error:
        raise AssertionError(str(error)) from error


def check_evaluation(values: Evaluation, where: str) -> None:
    """Require finite loss (B,) and slope (B, K)."""
    for name, value in (("loss", values.loss), ("slope", values.slope)):
        for index in np.argwhere(~np.isfinite(value)):
            at = tuple(index.tolist())
            raise AssertionError(f"{name} must be finite {where}: at index {at} it is {value[at]}")


def slope_is_derivative(case: Case) -> None:
    """Require that the slope is the derivative of the loss, by central differences."""
    step = 1e-5  # about the cube root of the rounding, where central differences are most exact
    differences = np.empty_like(case.sqdist)
    for k in range(len(case.labels)):
        ahead = case.sqdist.copy()
        behind = case.sqdist.copy()
        ahead[:, k] += step
        behind[:, k] -= step
        differences[:, k] = (case.at(ahead).loss - case.at(behind).loss) / (2 * step)
    rule = "slope must be the derivative of loss by sqdist"
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = case.slope / differences
    if np.allclose(ratio, ratio.flat[0], rtol=1e-3) and np.isfinite(ratio).all():
        rule += f" (everywhere it is {ratio.flat[0]:.3g} times that)"
    size = max(np.abs(differences).max(), np.abs(case.slope).max())
    agree(case.slope, differences, size, rule)


def samples_stand_alone(case: Case) -> None:
    """Require that a batch has the values of its samples one by one, in any order."""
    size = np.abs(case.slope).max()
    for b in range(len(case.sqdist)):
        one = case.at(case.sqdist[b : b + 1], case.targets[b : b + 1])
        rule = f"a batch must be evaluated as its samples one by one (here sample {b})"
        agree(one.loss, case.loss[b : b + 1], np.abs(case.loss).max(), f"{rule}: loss")
        agree(one.slope, case.slope[b : b + 1], size, f"{rule}: slope")
    order = np.roll(np.arange(len(case.sqdist)), 1)
    rolled = case.at(case.sqdist[order], case.targets[order])
    agree(rolled.slope, case.slope[order], size, "slope must follow the order of the samples")
    agree(rolled.loss, case.loss[order], np.abs(case.loss).max(), "loss must follow their order")


def prototypes_in_any_order(case: Case) -> None:
    """Require the same values if prototypes are not sorted by class."""
    order = np.roll(np.arange(len(case.labels)), 1)
    values = case.at(case.sqdist[:, order], labels=case.labels[order])
    size = np.abs(case.slope).max()
    agree(values.loss, case.loss, np.abs(case.loss).max(), "loss must not depend on the order of the prototypes")
    agree(values.slope, case.slope[:, order], size, "slope must follow the order of the prototypes")


def finite_far_away(case: Case) -> None:
    """Require finite values where exponentials underflow, at distance 0 and at equal distances."""
    own = case.labels == np.arange(len(case.sqdist))[:, None] % (case.labels.max() + 1)
    at_prototype = case.sqdist.copy()
    np.fill_diagonal(at_prototype, 0.0)
    places = {
        "at distances of 1e8": 1e8 * case.sqdist,
        "at distances of 1e100": 1e100 * case.sqdist,
        "with the own class 1e8 away": case.sqdist + 1e8 * own,
        "with the other classes 1e8 away": case.sqdist + 1e8 * ~own,
        "at a distance of 0": at_prototype,
        "at equal distances": np.full_like(case.sqdist, 2.0),
    }
    for where, sqdist in places.items():
        with np.errstate(all="ignore"):
            values = case.at(sqdist)
        check_evaluation(values, where)


def log_proba_sums_to_one(case: Case) -> None:
    """Require that the class posterior sums to one, if the cost has one."""
    if not provides(case.cost, Probabilistic):
        return
    log_proba = case.cost.log_proba(case.sqdist, case.labels, case.sigma2)
    shape = (len(case.sqdist), int(case.labels.max()) + 1)
    require(np.shape(log_proba) == shape, f"log_proba must have shape {shape}, got {np.shape(log_proba)}")
    agree(np.exp(log_proba).sum(axis=1), np.ones(shape[0]), 1, "exp(log_proba) must sum to one")


PROMISES = (slope_is_derivative, samples_stand_alone, prototypes_in_any_order, finite_far_away, log_proba_sums_to_one)
