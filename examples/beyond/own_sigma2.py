"""sigma2 that follows its gradient during training, beside the value of the rule and the choice of the default.

All ways under the affine-invariant metric have one prototype per class, 20 epochs, and the same splits:

- "default" chooses by held-out samples whether to train, with sigma2 from the rule;
- "rule" always trains, with the step of the default's training and a constant sigma2 from the rule;
- "learned, rate r" starts as "rule". After each epoch log sigma2 follows the mean loss L of the training samples,
  ``log sigma2 <- log sigma2 - r dL / d log sigma2``. A loss that depends on squared distances d over sigma2 only has
  ``dL / d log sigma2 = -sum_k slope_k d_k``, and the steps follow sigma2;
- "learned where the default trains" is "learned, rate 0.1" on the splits on which the default trains, and the default
  on the others.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from examples.beyond import default
from examples.paper.data import Split, is_available
from examples.paper.runner import Job, Record
from rplvq import RSLVQ, AffineInvariant, RiemannianLVQ, Share, Trainer
from rplvq.arrays import Samples, distances
from rplvq.protocols import Array
from rplvq.schedules import Constant

__all__ = ["RATES", "SIZES", "derivative", "jobs", "learned", "score", "smoke"]

RATES = (0.1, 1.0)
SIZES: tuple[tuple[str, Any], ...] = (("syn2", 120), ("digits", 1000), ("eth80", "full256"), ("bci2a", 72))
AMOUNT = 3.0
"""Amount of training, as where the default trains."""
REPETITIONS = {"syn2": 10, "digits": 5, "eth80": 5, "bci2a": 3}


def derivative(sqdist: Array, targets: Array, labels: Array, sigma2: float) -> float:
    """Return the derivative of the mean loss of RSLVQ with respect to log sigma2, from distances (N, K)."""
    slope = RSLVQ()(sqdist, targets, labels, sigma2).slope
    return -float(np.vdot(slope, sqdist)) / len(sqdist)


def learned(split: Split, rate: float, seed: int, max_epochs: int) -> Record:
    """Train with a sigma2 that follows its gradient at this rate; 0 keeps the value of the rule.

    Returns
    -------
    dict
        accuracy and log_loss on the test data, and factor: sigma2 after training over its value before.
    """
    manifold = AffineInvariant()
    classes, targets = np.unique(split.y_train, return_inverse=True)
    samples = Samples(manifold.encode(split.X_train), targets)
    trainer = Trainer(manifold, step_size=Share(amount=AMOUNT), max_epochs=max_epochs)
    rng = np.random.default_rng(seed)
    state = trainer.init(samples, len(classes), rng)
    first = state.sigma2
    for epoch in range(1, max_epochs + 1):
        state, _, _ = trainer.sweep(state.at_epoch(epoch, max_epochs), samples, rng)
        sqdist = distances(manifold, state.prototypes, samples.codes)
        change = -rate * derivative(sqdist, targets, state.labels, state.sigma2)
        sigma2 = Constant(float(state.sigma2 * np.exp(change)))
        steps: Any = state.step_schedule
        state = state._replace(sigma2_schedule=sigma2, step_schedule=attrs.evolve(steps, sigma2=sigma2))
    state = state.at_epoch(max_epochs, max_epochs)
    sqdist = distances(manifold, state.prototypes, manifold.encode(split.X_test))
    true = np.searchsorted(classes, split.y_test)
    log_proba = RSLVQ().log_proba(sqdist, state.labels, state.sigma2)
    return {
        "accuracy": float(np.mean(state.labels[sqdist.argmin(axis=1)] == true)),
        "log_loss": -float(np.mean(log_proba[np.arange(len(true)), true])),
        "factor": float(state.sigma2 / first),
    }


def score(*, repetition: int, method: str, data: str, size: Any, max_epochs: int = default.EPOCHS) -> Record:
    """Score all ways on the splits of one repetition; ``method`` has no effect.

    Returns
    -------
    dict
        accuracy, log_loss and factor by way, as means over the splits, and trained: the share of splits on which the
        default trains.
    """
    del method
    rows: dict[str, list[Record]] = {}
    trained = []
    for split in default.splits(data, size, repetition):
        model = RiemannianLVQ(max_epochs=max_epochs, random_state=repetition).fit(split.X_train, split.y_train)
        own = {
            "accuracy": float(model.score(split.X_test, split.y_test)),
            "log_loss": default.loss_of(model, split, model.predict_proba(split.X_test)),
        }
        ways = {"default": own, "rule": learned(split, 0.0, repetition, max_epochs)}
        ways |= {f"learned, rate {rate:g}": learned(split, rate, repetition, max_epochs) for rate in RATES}
        trained.append(model.n_epochs_ > 0)
        ways["learned where the default trains"] = ways[f"learned, rate {RATES[0]:g}"] if trained[-1] else own
        for way, scores in ways.items():
            rows.setdefault(way, []).append(scores)
    means = {
        way: {name: float(np.mean([row[name] for row in found if name in row])) for name in found[0]}
        for way, found in rows.items()
    }
    return {**means, "trained": float(np.mean(trained))}


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs; ``quick`` has one repetition of 3 epochs."""
    options = {"max_epochs": 3} if quick else {}
    return [
        Job(f"sigma2-{data}", "all", repetition, {"data": data, "size": size} | options, score)
        for data, size in SIZES
        if data not in default.FILES or is_available(default.FILES[data])
        for repetition in range(1 if quick else REPETITIONS[data])
    ]


def smoke() -> list[Job]:
    """Return jobs of seconds: few digits, two epochs."""
    return [Job("sigma2-digits", "all", 0, {"data": "digits", "size": 50, "max_epochs": 2}, score)]
