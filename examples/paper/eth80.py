"""ETH-80 with 3 to 8 categories and one 5x5 covariance per image; 21 random images of each object train.

Categories are added in the order apple, car, cow, cup, dog, horse, pear, tomato. The descriptors of whole images
(``full256``) are those of the paper. The descriptors of the objects' masks (``mask256``) are our addition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from examples.paper.data import Split, load_arrays
from examples.paper.evaluate import fit_and_score, select_and_score
from examples.paper.kernel_kmeans import median_gamma
from examples.paper.kernels import (
    clustering_accuracy,
    le_kernel_kmeans,
    le_kmeans,
    log_vectors,
    majority_labels,
    tuned_le_svc,
)
from examples.paper.relatives import RELATIVES
from examples.paper.runner import Job, Record
from rplvq import ClassMeans, RiemannianLVQ
from rplvq.presets import plrsq_annealed, plrsq_const
from rplvq.protocols import Array

__all__ = ["BASELINES", "CLUSTERINGS", "PLRSQ", "classify", "cluster", "jobs", "select", "split"]

N_TRAIN = 21
N_CLASSES = (8, 7, 6, 5, 4, 3)
DESCRIPTORS = ("full256", "mask256")
# Prototypes per class by number of categories: the paper's means over its splits (4.00, 4.75, 4.95, 5.75, 5.75, 5.85),
# rounded. The paper's sigma2 is .49 for three categories and .50 for all others.
PROTOTYPES = {3: 4, 4: 5, 5: 5, 6: 6, 7: 6, 8: 6}
SIGMA2 = 0.5
SIGMA2_CURVE = [0.45, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0]
SELECTION = {"sigma2": [0.45, 0.5, 1.0, 2.0], "prototypes_per_class": [1, 2, 3, 4, 5, 6]}
GAMMA_FACTORS = (0.25, 1.0, 4.0, 16.0)

BASELINES: dict[str, Callable[..., Any]] = {
    "MDRM": lambda _: RiemannianLVQ(max_epochs=0),
    "LE-MDM": lambda _: RiemannianLVQ("log_euclidean", max_epochs=0),
    "LE kernel SVM": tuned_le_svc,
}
CLUSTERINGS = ("LE k-means", "LE kernel k-means")
# Whatever differs from the paper is part of the settings of the job. The wide start spreads the prototypes of a class
# over a tenth of the distances within the class, instead of a thousandth. It was chosen on the splits 101 and 102,
# which are not reported. With annealing it scored .893 on split 101 (.887 with the paper's start, .883 with a start by
# k-means) and .899 on split 102. On split 102 the following were not better: 10 prototypes per class (.866, and .892
# at the step size of 6 prototypes), slower annealing (.884), a smaller fall of sigma2 (.894), half the step size
# (.893).
PLRSQ: dict[str, tuple[Callable[..., RiemannianLVQ], Record]] = {
    "PLRSQ-AN": (plrsq_annealed, {}),
    "PLRSQ-Const": (plrsq_const, {}),
    "PLRSQ-AN, wide start": (plrsq_annealed, {"perturbation": 0.1}),
    "Log-Euclidean PLRSQ": (plrsq_const, {"manifold": "log_euclidean"}),
    "Log-Euclidean PLRSQ-AN": (plrsq_annealed, {"manifold": "log_euclidean"}),
}


def split(descriptor: str, n_classes: int, repetition: int) -> Split:
    """Draw 21 images of each object of the first ``n_classes`` categories for training; the other 20 images test.

    Parameters
    ----------
    descriptor : {"full256", "mask256"}
        Which pixels are described: those of the whole image, or those of the object.
    n_classes : int
        3 to 8; the draw of an object's images does not depend on it.
    repetition : int
        Seed.

    Returns
    -------
    Split
        Covariances (210 C, 5, 5) and (200 C, 5, 5), with their labels 0..C-1.
    """
    X, y, number = load_arrays("eth80_cov5.npz", descriptor, "y", "object")
    rng = np.random.default_rng(repetition)
    train = np.zeros(len(y), dtype=bool)
    for label, item in product(np.unique(y), np.unique(number)):
        views = np.flatnonzero((y == label) & (number == item))
        train[rng.permutation(views)[:N_TRAIN]] = True
    kept = y < n_classes
    return Split(X[train & kept], y[train & kept], X[~train & kept], y[~train & kept])


def classify(*, repetition: int, method: str, descriptor: str, n_classes: int, **settings: Any) -> Record:
    """Fit and score one classifier of BASELINES, or one of PLRSQ or RELATIVES with its settings."""
    data = split(descriptor, n_classes, repetition)
    if method in BASELINES:
        model = BASELINES[method](repetition)
    elif method in RELATIVES:
        model = RELATIVES[method](**settings, random_state=repetition)
    else:
        model = _plrsq(method, repetition, settings)
    result = fit_and_score(model, data)
    if hasattr(model, "best_params_"):
        result["chosen"] = model.best_params_
    return result


def _plrsq(method: str, seed: int, settings: Record) -> RiemannianLVQ:
    make, _ = PLRSQ[method]
    paper = {key: settings[key] for key in ("sigma2", "prototypes_per_class", "max_epochs")}
    init = ClassMeans(perturbation=settings.get("perturbation", 1e-3))
    manifold = settings.get("manifold", "affine_invariant")
    return make(**paper).set_params(random_state=seed, init=init, metric=manifold)


def curve(
    *,
    repetition: int,
    method: str,
    descriptor: str,
    n_classes: int,
    sigma2: Sequence[float],
    prototypes_per_class: Sequence[int],
    max_epochs: int,
) -> Record:
    """Score a method of PLRSQ, whose name a remark may follow, at all combinations of sigma2 and prototypes per class.

    Returns
    -------
    dict of lists
        sigma2, prototypes_per_class, accuracy (on the test images) and train_accuracy of each combination.
    """
    data = split(descriptor, n_classes, repetition)
    names = ("sigma2", "prototypes_per_class", "accuracy", "train_accuracy")
    result: Record = {name: [] for name in names}
    for variance, count in product(sigma2, prototypes_per_class):
        settings = {"sigma2": variance, "prototypes_per_class": count, "max_epochs": max_epochs}
        model = _plrsq(method.split(",")[0], repetition, settings).fit(data.X_train, data.y_train)
        scores = (model.score(data.X_test, data.y_test), model.score(data.X_train, data.y_train))
        for name, value in zip(names, (variance, count, *scores), strict=True):
            result[name].append(value)
    return result


def cluster(*, repetition: int, method: str, descriptor: str, n_classes: int) -> Record:
    """Cluster the test images without labels, into as many clusters as there are categories.

    The accuracy of the clustering, as Jayasumana et al. 2015 report it, assigns clusters to categories one to one, so
    that as many test images as possible are correct (the Hungarian method). The accuracy of a classifier is computed
    as well: each cluster of the training images gets the category of most of its members, and a test image gets the
    category of the nearest centre. For kernel k-means, gamma has the best clustering accuracy on the training images.

    Returns
    -------
    dict
        accuracy (of the clustering), classifier_accuracy, and for kernel k-means gamma_factor, the ratio of gamma to
        that of the median heuristic.
    """
    data = split(descriptor, n_classes, repetition)
    result: Record = {}
    if method == "LE kernel k-means":
        result["gamma_factor"] = _choose_gamma(data, n_classes, repetition)

    def clustering(X: Array) -> Any:
        if method == "LE k-means":
            return le_kmeans(n_classes, repetition).fit(X)
        gamma = median_gamma(log_vectors(X)) * result["gamma_factor"]
        return le_kernel_kmeans(n_classes, gamma, repetition).fit(X)

    trained = clustering(data.X_train)
    labels = majority_labels(trained[-1].labels_, data.y_train, n_classes)
    return result | {
        "accuracy": clustering_accuracy(data.y_test, clustering(data.X_test)[-1].labels_),
        "classifier_accuracy": float(np.mean(labels[trained.predict(data.X_test)] == data.y_test)),
    }


def _choose_gamma(data: Split, n_classes: int, seed: int) -> float:
    median = median_gamma(log_vectors(data.X_train))
    scores = [
        clustering_accuracy(data.y_train, le_kernel_kmeans(n_classes, gamma, seed, 5).fit(data.X_train)[-1].labels_)
        for gamma in median * np.array(GAMMA_FACTORS)
    ]
    return GAMMA_FACTORS[int(np.argmax(scores))]


def select(
    *,
    repetition: int,
    method: str,
    descriptor: str,
    n_classes: int,
    sigma2: Sequence[float],
    prototypes_per_class: Sequence[int],
    n_folds: int,
    **settings: Any,
) -> Record:
    """Choose sigma2 and the number of prototypes by cross-validation on the training images, then fit and score."""
    name = method.split(",")[0]
    grid = {"sigma2": sigma2, "prototypes_per_class": prototypes_per_class}
    return select_and_score(
        lambda **values: _plrsq(name, repetition, values | settings),
        grid,
        split(descriptor, n_classes, repetition),
        n_folds=n_folds,
        seed=repetition,
    )


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs, those that the paper's table needs first; ``quick`` has one split and few epochs."""
    if quick:
        tables = [*_row("full256", 3, 0, 10), *_row("full256", 8, 0, 5), *_row("mask256", 3, 0, 5)]
        return [*tables, *_curves(range(1), 3, 5), *_selection(range(1), (3,), (1, 2), 5)]
    cells = product(DESCRIPTORS, range(20), N_CLASSES)
    table = [job for descriptor, repetition, n_classes in cells for job in _row(descriptor, n_classes, repetition)]
    curves = _curves(range(20), 8, 100)
    selection = _selection(range(5), N_CLASSES[::-1], SELECTION["prototypes_per_class"], 100)
    return [*table, *curves, *selection]


def smoke() -> list[Job]:
    """Return jobs of seconds: three categories and one or two epochs per method."""
    settings = {"descriptor": "full256", "n_classes": 3, "max_epochs": 1, "n_folds": 2}
    grid = {"sigma2": [0.5], "prototypes_per_class": [1, 2]}
    chosen = Job("eth80-selection-C3", "PLRSQ-Const, K=1-2", 0, settings | grid, select)
    few = {"descriptor": "full256", "n_classes": 3, "max_epochs": 1} | grid
    return [*_row("full256", 3, 0, 2), chosen, Job("eth80-curves", "PLRSQ-AN, prototypes", 0, few, curve)]


def _row(descriptor: str, n_classes: int, repetition: int, max_epochs: int = 100) -> Iterator[Job]:
    """Yield the jobs of all methods on one split."""
    experiment = f"eth80-{descriptor}-C{n_classes}"
    settings: Record = {"descriptor": descriptor, "n_classes": n_classes}
    for method in BASELINES:
        yield Job(experiment, method, repetition, settings, classify)
    for method in CLUSTERINGS:
        yield Job(experiment, method, repetition, settings, cluster)
    trained = {"prototypes_per_class": PROTOTYPES[n_classes], "sigma2": SIGMA2, "max_epochs": max_epochs}
    for method, (_, ours) in PLRSQ.items():
        yield Job(experiment, method, repetition, settings | trained | ours, classify)
    margin = {"prototypes_per_class": PROTOTYPES[n_classes], "max_epochs": min(50, max_epochs)}
    for method in RELATIVES:
        yield Job(experiment, method, repetition, settings | margin, classify)


def _curves(repetitions: range, n_classes: int, max_epochs: int) -> Iterator[Job]:
    """Yield accuracy against sigma2, and against the number of prototypes per class."""
    for repetition, method in product(repetitions, ("PLRSQ-AN", "PLRSQ-Const")):
        settings = {"descriptor": "full256", "n_classes": n_classes, "max_epochs": max_epochs}
        for remark, sigma2, counts in (
            ("sigma2", SIGMA2_CURVE, [PROTOTYPES[n_classes]]),
            ("prototypes", [SIGMA2], SELECTION["prototypes_per_class"]),
        ):
            varied = {"sigma2": sigma2, "prototypes_per_class": counts}
            yield Job("eth80-curves", f"{method}, {remark}", repetition, settings | varied, curve)


def _selection(
    repetitions: range, n_classes: Sequence[int], prototypes: Sequence[int], max_epochs: int
) -> Iterator[Job]:
    """Yield the grid of the selection, one job per number of prototypes, so that a stop loses little."""
    for repetition, c, count in product(repetitions, n_classes, prototypes):
        settings = {"descriptor": "full256", "n_classes": c, "max_epochs": max_epochs, "n_folds": 5}
        grid = {"sigma2": SELECTION["sigma2"], "prototypes_per_class": [count]}
        yield Job(f"eth80-selection-C{c}", f"PLRSQ-AN, K={count}", repetition, settings | grid, select)
