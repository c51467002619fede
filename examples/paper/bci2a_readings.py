"""Why our TSSM+LDA is below the published one on BCI IV 2a: readings of how the submanifold is found.

Each reading is scored at several sizes m of the projected matrices, so that the effect of choosing m can be seen apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from sklearn.metrics import cohen_kappa_score

from examples.paper.data import load_bci2a
from examples.paper.runner import Job, Record

__all__ = ["READINGS", "jobs", "smoke", "submanifold"]

# Arguments of examples.paper.tssm.submanifold_lda by the name of the row.
READINGS: dict[str, Record] = {
    "class means": {"criterion": "means"},
    "class means, plain LDA": {"criterion": "means", "shrinkage": None},
    "global structure": {"criterion": "global"},
    "global over local structure": {"criterion": "local"},
    "between over within classes": {"criterion": "classes"},
}


def submanifold(*, repetition: int, method: str, subjects: Sequence[int], n_components: Sequence[int]) -> Record:
    """Score one reading of TSSM+LDA at each size of the submanifold; ``repetition`` has no effect.

    Returns
    -------
    dict
        n_components, and kappa: one list over the sizes for each subject.
    """
    del repetition
    from examples.paper import tssm

    kappas = []
    for subject in subjects:
        data = load_bci2a(subject)
        row = []
        for size in n_components:
            model = tssm.submanifold_lda(size, **READINGS[method]).fit(data.X_train, data.y_train)
            row.append(float(cohen_kappa_score(data.y_test, model.predict(data.X_test))))
        kappas.append(row)
    return {"n_components": list(n_components), "kappa": kappas}


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs, which have no seed; ``quick`` has two subjects and one size."""
    return _jobs([1, 2], [6]) if quick else _jobs(list(range(1, 10)), [6, 10, 14, 18, 22])


def smoke() -> list[Job]:
    """Return jobs of seconds: one subject and one size."""
    return _jobs([1], [6])


def _jobs(subjects: list[int], sizes: list[int]) -> list[Job]:
    settings = {"subjects": subjects, "n_components": sizes}
    return [Job("bci2a-tssm", reading, 0, settings, submanifold) for reading in READINGS]
