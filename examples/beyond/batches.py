"""Mini-batches of 16 against single samples: cost and accuracy after 20 epochs, with the same step and 16 times it.

The step size is the paper's decay from its start value ``n xi / 100``. sigma2 and the number of prototypes are those
of :mod:`examples.beyond.steps`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from examples.beyond.steps import DATA, FILES, mean_of, scored, splits
from examples.paper.bci2a import PAPER_SETTINGS
from examples.paper.data import is_available
from examples.paper.runner import Job, Record
from rplvq import GeometricDecay, RiemannianLVQ

__all__ = ["METHODS", "jobs", "smoke", "train"]

METHODS = {"single samples": (1, 1.0), "batches of 16": (16, 1.0), "batches of 16, 16 times the step": (16, 16.0)}
"""Number of samples per batch, and the factor on the step size."""
EPOCHS = 20


def train(
    *, repetition: int, method: str, data: str, subjects: Sequence[Sequence[float]] = (), **settings: Any
) -> Record:
    """Train in batches; the result is as in :func:`examples.beyond.steps.train`."""
    size, factor = METHODS[method]
    rows = []
    for split, own in splits(data, repetition, subjects, settings):
        start = factor * split.X_train.shape[-1] * own["prototypes_per_class"] / 100
        own = own | {"batch_size": size, "step_size": GeometricDecay(start)}
        rows.append(scored(RiemannianLVQ(random_state=repetition, **own), split))
    return mean_of(rows)


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs: five repetitions per data set, and one of the nine subjects of BCI 2a."""
    found = []
    for data, settings in DATA.items():
        if data in FILES and not is_available(FILES[data]):
            continue
        own: dict[str, Any] = {"data": data} | settings | {"max_epochs": 2 if quick else EPOCHS}
        if data == "bci2a":
            own["subjects"] = PAPER_SETTINGS
        for repetition in range(1 if quick or data == "bci2a" else 5):
            found += [Job(f"batches-{data}", method, repetition, own, train) for method in METHODS]
    return found


def smoke() -> list[Job]:
    """Return jobs of seconds: SynII, one epoch."""
    settings = {"data": "syn2", "sigma2": 0.5, "prototypes_per_class": 1, "max_epochs": 1}
    return [Job("batches-syn2", method, 0, settings, train) for method in METHODS]
