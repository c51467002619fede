"""BCI Competition IV 2a: session 1 trains, session 2 tests, and the score is kappa for each of nine subjects.

Re-centred methods move the Riemannian mean of each session to the identity. They use all matrices of the test session
together, without labels, and are therefore reported separately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import StratifiedKFold, cross_val_score

from examples.paper.data import Split, load_bci2a
from examples.paper.evaluate import accuracy_and_kappa
from examples.paper.relatives import RELATIVES
from examples.paper.runner import Job, Record
from examples.paper.selection import coordinate_search, without_sigma2
from examples.paper.synthetic_methods import log_euclidean
from rplvq import Annealed, ProjectedEuclidean, RiemannianLVQ
from rplvq.preprocessing import Recenter
from rplvq.presets import plrsq_annealed, plrsq_const
from rplvq.protocols import Array

__all__ = ["DETERMINISTIC", "PAPER_SETTINGS", "TRAINED", "evaluate", "jobs", "select", "smoke"]

# Subject, prototypes per class, epochs and sigma2, as the paper selected them.
PAPER_SETTINGS = [
    [1, 1, 20, 3.5],
    [2, 4, 20, 1.0],
    [3, 4, 20, 1.0],
    [4, 2, 100, 8.0],
    [5, 1, 20, 4.0],
    [6, 1, 20, 3.5],
    [7, 2, 50, 5.5],
    [8, 2, 20, 2.5],
    [9, 1, 100, 5.0],
]
SELECTION = {
    "grid": {"sigma2": [1.0, 2.5, 3.5, 5.0, 8.0], "prototypes_per_class": [1, 2, 4], "max_epochs": [20, 50, 100]},
    "start": {"sigma2": 3.5, "prototypes_per_class": 1, "max_epochs": 20},
}
SMALL_SELECTION: Record = {
    "grid": {"sigma2": [2.5, 8.0], "prototypes_per_class": [1, 2], "max_epochs": [1, 2]},
    "start": {"sigma2": 2.5, "prototypes_per_class": 1, "max_epochs": 1},
    "n_folds": 2,
}
RECENTRED = ", re-centred"


def code_annealed(sigma2: float, prototypes_per_class: int, max_epochs: int, **other: Any) -> RiemannianLVQ:
    """PLRSQ-AN with the range of the authors' program, from sigma2 + .2 down to sigma2 - .2."""
    return plrsq_annealed(Annealed.around(sigma2), prototypes_per_class, max_epochs, **other)


def projected(sigma2: float, prototypes_per_class: int, max_epochs: int, **other: Any) -> RiemannianLVQ:
    """Frobenius distance with projection. The floor is relative to the data, since the paper's suits its own data only.

    The distances have other units, so the given sigma2 is replaced by half the median squared distance.
    """
    del sigma2
    model = plrsq_const("half_median", prototypes_per_class, max_epochs, **other)
    model.set_params(metric=ProjectedEuclidean(relative=True))
    return model


def plvq(sigma2: float, prototypes_per_class: int, max_epochs: int, **other: Any) -> RiemannianLVQ:
    """PLRSQ-Const with the cost PLVQ. From plain labels it learns the same as RSLVQ, from soft labels it does not."""
    return plrsq_const(sigma2, prototypes_per_class, max_epochs, cost="plvq", **other)


def _baseline(name: str) -> Any:
    """Return a classifier without a seed. Other libraries are imported only here."""
    if name in ("MDRM", "LE-MDM"):
        return RiemannianLVQ("affine_invariant" if name == "MDRM" else "log_euclidean", max_epochs=0)
    if name == "LE kernel SVM":
        from examples.paper.kernels import tuned_le_svc

        return tuned_le_svc()
    from examples.paper import tssm

    return {"TSLDA": tssm.tangent_space_lda, "TSSM+LDA": tssm.tssm_lda, "CSP+LDA": tssm.csp_lda}[name]()


TRAINED: dict[str, Callable[..., RiemannianLVQ]] = {
    "PLRSQ-Const": plrsq_const,
    "PLRSQ-AN": plrsq_annealed,
    "PLRSQ-AN of the program": code_annealed,
    "Log-Euclidean PLRSQ": log_euclidean(plrsq_const),
    "Projected PLRSQ": projected,
    "PLVQ": plvq,
    "PLVQ, soft labels": plvq,
}
DETERMINISTIC = ("MDRM", "LE-MDM", "TSLDA", "TSSM+LDA", "CSP+LDA", "LE kernel SVM")


def recentred(data: Split) -> Split:
    """Move the Riemannian mean of each session to the identity."""
    return data._replace(X_train=Recenter().fit_transform(data.X_train), X_test=Recenter().fit_transform(data.X_test))


def softened(y: Array, share: float) -> Array:
    """Class probabilities (N, C) of labels (N,): ``share`` is spread evenly over all classes."""
    classes, index = np.unique(y, return_inverse=True)
    return (1 - share) * np.eye(len(classes))[index] + share / len(classes)


def evaluate(*, repetition: int, method: str, subjects: Sequence[Sequence[float]], softness: float = 0.0) -> Record:
    """Train on session 1 and test on session 2 of each subject.

    Parameters
    ----------
    repetition : int
        Seed of training.
    method : str
        A name of TRAINED, RELATIVES or DETERMINISTIC; ", re-centred" may follow.
    subjects : sequence of [subject] or [subject, prototypes per class, epochs, sigma2]
        The subjects, with the settings of a trained method.
    softness : float, default=0
        Share of each label that is spread over all classes.

    Returns
    -------
    dict
        kappa, accuracy and train_accuracy, which are lists over the subjects, and mean_kappa.
    """
    result: Record = {"kappa": [], "accuracy": [], "train_accuracy": []}
    for subject, *settings in subjects:
        data = load_bci2a(int(subject))
        if method.endswith(RECENTRED):
            data = recentred(data)
        model = _model(method.removesuffix(RECENTRED), settings, repetition)
        _score(model, data, softness, result)
    return result | {"mean_kappa": float(np.mean(result["kappa"]))}


def _model(name: str, settings: Sequence[float], seed: int) -> Any:
    if name not in (*TRAINED, *RELATIVES):
        return _baseline(name)
    count, epochs, sigma2 = settings
    if name in RELATIVES:
        return RELATIVES[name](prototypes_per_class=int(count), max_epochs=int(epochs), random_state=seed)
    return TRAINED[name](sigma2, int(count), int(epochs), random_state=seed)


def _score(model: Any, data: Split, softness: float, result: Record) -> None:
    """Fit a classifier and append its scores."""
    classes = np.unique(data.y_train)
    model.fit(data.X_train, softened(data.y_train, softness) if softness else data.y_train)

    def predict(X: Array) -> Array:
        labels = model.predict(X)
        return np.asarray(classes[labels] if softness else labels)

    predicted = predict(data.X_test)
    result["kappa"].append(float(cohen_kappa_score(data.y_test, predicted)))
    result["accuracy"].append(float(np.mean(predicted == data.y_test)))
    result["train_accuracy"].append(float(np.mean(predict(data.X_train) == data.y_train)))


def select(
    *,
    repetition: int,
    method: str,
    subject: int,
    grid: Mapping[str, Sequence[Any]],
    start: Mapping[str, Any],
    n_folds: int = 5,
) -> Record:
    """Choose settings by cross-validation on session 1, then train on all of session 1 and test on session 2.

    :func:`examples.paper.selection.coordinate_search` begins at ``start`` and varies sigma2, then the number of
    prototypes, then the number of epochs. It maximizes the mean accuracy over the folds.

    Returns
    -------
    dict
        chosen, kappa, accuracy, and tried: rows of sigma2, prototypes, epochs, mean accuracy.
    """
    data = load_bci2a(subject)
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=repetition)

    def new(**settings: Any) -> RiemannianLVQ:
        return (TRAINED | RELATIVES)[method.split(",")[0]](**settings, random_state=repetition)

    def score(**settings: Any) -> float:
        return float(cross_val_score(new(**settings), data.X_train, data.y_train, cv=folds).mean())

    choice = coordinate_search(score, grid, start)
    predicted = new(**choice.chosen).fit(data.X_train, data.y_train).predict(data.X_test)
    return {"chosen": choice.chosen, **accuracy_and_kappa(data.y_test, predicted), "tried": choice.tried}


def sigma2_line(
    *, repetition: int, method: str, sigma2: Sequence[float], subjects: Sequence[int], max_epochs: int = 20
) -> Record:
    """Score the first trials of the selection on session 2: one prototype per class, few epochs, each sigma2.

    Returns
    -------
    dict
        sigma2, and kappa: one list over the values of sigma2 for each subject.
    """
    kappas = []
    for subject in subjects:
        data = load_bci2a(subject)
        models = [TRAINED[method](value, 1, max_epochs, random_state=repetition) for value in sigma2]
        predictions = [model.fit(data.X_train, data.y_train).predict(data.X_test) for model in models]
        kappas.append([float(cohen_kappa_score(data.y_test, predicted)) for predicted in predictions])
    return {"sigma2": list(sigma2), "kappa": kappas}


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs, those of the table first; ``quick`` has one seed and at most 5 epochs."""
    settings = [[s, k, min(t, 5), v] for s, k, t, v in PAPER_SETTINGS] if quick else PAPER_SETTINGS
    seeds = range(1 if quick else 10)
    return [*_table(settings, len(seeds)), *_lines(seeds, quick), *_selection(seeds, quick)]


def smoke() -> list[Job]:
    """Return jobs of seconds: one subject, two epochs, and no baseline that searches its settings."""
    searching = ("TSSM+LDA", "CSP+LDA", "LE kernel SVM")
    table = [job for job in _table([[1, 1, 2, 3.5]], 1) if job.method not in searching]
    return [*table, Job("bci2a-selection", "PLRSQ-Const, S1", 0, SMALL_SELECTION | {"subject": 1}, select)]


def _table(settings: list[list[Any]], n_seeds: int) -> Iterator[Job]:
    subjects = [row[:1] for row in settings]
    for method in (*DETERMINISTIC, *(f"{name}{RECENTRED}" for name in ("MDRM", "TSLDA"))):
        yield Job("bci2a", method, 0, {"subjects": subjects}, evaluate)
    trained = (*TRAINED, f"PLRSQ-Const{RECENTRED}", *RELATIVES)
    for seed, method in product(range(n_seeds), trained):
        if method == "PLVQ" and seed > 0:
            continue  # the result equals that of PLRSQ-Const, which one seed is enough to show
        softness = {"softness": 0.1} if method == "PLVQ, soft labels" else {}
        yield Job("bci2a", method, seed, {"subjects": settings} | softness, evaluate)


def _selection(seeds: range, quick: bool) -> Iterator[Job]:
    grid = SMALL_SELECTION if quick else SELECTION
    for seed, method, subject in product(seeds, ("PLRSQ-AN", "PLRSQ-Const", "GLRSQ"), range(1, 10)):
        if quick and subject > 2:
            continue
        own = without_sigma2(grid) if method == "GLRSQ" else grid
        yield Job("bci2a-selection", f"{method}, S{subject}", seed, {"subject": subject} | own, select)


def _lines(seeds: range, quick: bool) -> Iterator[Job]:
    settings = {"sigma2": SELECTION["grid"]["sigma2"], "subjects": [1, 2] if quick else list(range(1, 10))}
    for seed in seeds:
        yield Job("bci2a-sigma2", "PLRSQ-Const", seed, settings, sigma2_line)
