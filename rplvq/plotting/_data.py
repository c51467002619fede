"""Pictures of data: spectra by class, and samples by their distances to the prototypes."""

from typing import Any

import numpy as np

from rplvq.manifolds import AffineInvariant
from rplvq.plotting._style import INK, Axes, class_colors, labels_of, new_axes, tidy, with_unit


def plot_spectra(X: Any, y: Any, ax: Axes | None = None, *, unit: str = "") -> Axes:
    """Draw the median eigenvalues of each class, largest first, and the band from 10 to 90 %.

    Parameters
    ----------
    X, y : array-like of shape (N, n, n), and (N,)
        Symmetric or Hermitian positive definite matrices, and their labels.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    unit : str, default=""
        Unit of the entries, for the label of the axis.

    Examples
    --------
    >>> from rplvq.datasets import make_syn2
    >>> from rplvq.plotting import plot_spectra
    >>> ax = plot_spectra(*make_syn2(n_per_class=5, random_state=0))
    >>> len(ax.lines), ax.get_yscale()
    (4, 'log')
    """
    matrices = AffineInvariant().encode(X)
    labels = labels_of(y, len(matrices), "matrix")
    ax = new_axes(ax)
    spectra = np.linalg.eigvalsh(matrices)[:, ::-1]
    ranks = np.arange(1, spectra.shape[1] + 1)
    for label, color in class_colors(np.unique(labels)).items():
        low, middle, high = np.quantile(spectra[labels == label], [0.1, 0.5, 0.9], axis=0)
        ax.fill_between(ranks, low, high, color=color, alpha=0.2, linewidth=0)
        ax.plot(ranks, middle, "o-", color=color, ms=3.5, label=str(label))
    ax.set(xlabel="rank of the eigenvalue (1 is the largest)", ylabel=with_unit("eigenvalue", unit), yscale="log")
    ax.locator_params(axis="x", integer=True)
    return tidy(ax, title="class")


def plot_distances(model: Any, X: Any, y: Any = None, ax: Axes | None = None) -> Axes:
    """Draw samples in the plane that shows most of the variance of their distances to the prototypes.

    The K distances of each sample, ``model.transform(X)``, are projected onto their first two principal components, and
    so are the distances of the prototypes to each other. Misclassified samples are crosses.

    Parameters
    ----------
    model : RiemannianLVQ
        A fitted model.
    X, y : array-like of shape (N, n, n), and (N,)
        Samples and their labels; by default the predicted labels give the colours.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> from rplvq import RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> from rplvq.plotting import plot_distances
    >>> X, y = make_syn1(n_per_class=10, random_state=0)
    >>> ax = plot_distances(RiemannianLVQ(max_epochs=2, random_state=0).fit(X, y), X, y)
    >>> ax.get_xlabel().startswith("first principal component")
    True
    """
    distances = model.transform(X)
    predicted = model.predict(X)
    labels = predicted if y is None else labels_of(y, len(predicted))
    ax = new_axes(ax, 5.6, 4.6)
    center = distances.mean(axis=0)
    plane = np.zeros((2, distances.shape[1]))
    _, lengths, axes = np.linalg.svd(distances - center, full_matrices=False)
    plane[: len(axes)] = axes[:2]  # the second coordinate is zero if K is 1
    samples, prototypes = ((part - center) @ plane.T for part in (distances, model.transform(model.prototypes_)))
    colors = class_colors(np.asarray(model.classes_))
    for label, color in colors.items():
        own = labels == label
        right = samples[own & (predicted == labels)]
        wrong = samples[own & (predicted != labels)]
        mine = prototypes[np.asarray(model.prototype_labels_) == label]
        ax.scatter(right[:, 0], right[:, 1], s=14, color=color, alpha=0.6, linewidths=0, label=str(label))
        ax.scatter(wrong[:, 0], wrong[:, 1], s=26, color=color, marker="x", linewidths=1.2)
        ax.scatter(mine[:, 0], mine[:, 1], s=110, color=color, marker="D", edgecolors=INK, linewidths=1.5, zorder=3)
    shares = [*(100 * lengths**2 / np.sum(lengths**2)), 0.0]
    first = f"first principal component of the distances ({shares[0]:.0f} %)"
    ax.set(xlabel=first, ylabel=f"second ({shares[1]:.0f} %)")
    ax.set_title("dot: sample; cross: misclassified; diamond: prototype", fontsize="small")
    return tidy(ax, title="class", fontsize="small")
