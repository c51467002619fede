"""DistributedLVQ: a RiemannianLVQ that is fitted from a Dask array and predicts lazily."""

from os import PathLike
from typing import Any, Self

import attrs
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from rplvq.arrays import Samples, accuracy, check_labels, matrix_size, number_groups, single_blas_thread
from rplvq.distributed._initial import first_prototypes
from rplvq.distributed._partitions import collected, in_blocks, partition
from rplvq.distributed._training import DistributedTrainer
from rplvq.estimators import (
    RiemannianLVQ,
    ambient_of,
    begin_training,
    make_trainer,
    manifold_of,
    new_or_resumed,
    referenced,
    resolve_counts,
    resolve_early_stopping,
    resolve_initializer,
    resolve_step_size,
    store,
)
from rplvq.exceptions import PointError
from rplvq.io import require_valid
from rplvq.manifolds import is_additive
from rplvq.parts import callables
from rplvq.protocols import Array, Manifold
from rplvq.training import edge_trouble, step_trouble, untrained_history, warn_of

SAMPLE = 20_000
"""Number of evenly spaced samples that this process collects to choose sigma2 and the step size from.

A reference, such as that of :class:`rplvq.TangentSpace`, is learned from the same samples.
"""

FITTED = (
    "classes_", "prototypes_", "prototype_labels_", "sigma2_", "step_size_", "choice_", "n_epochs_", "history_",
)  # fmt: skip
"""Attributes of the fitted classifier that this estimator has, too."""


class DistributedLVQ(ClassifierMixin, BaseEstimator):
    """Prototypes learned from a Dask array of samples that no single machine has to hold.

    In each step the K prototypes go to the workers. Each worker returns the sums of its tangents, losses and errors,
    and one ``exp`` moves the prototypes, so the bytes on the wire do not depend on the number of samples. With the same
    batches the prototypes are those of :class:`rplvq.Trainer` up to rounding, whatever the number of partitions and
    workers. Dask decides where to compute: in threads, or in the cluster of a ``dask.distributed.Client`` if there is
    one. If a worker dies, Dask replaces it and computes its sums again.

    Parameters
    ----------
    estimator : RiemannianLVQ, optional
        Parts and parameters; by default ``RiemannianLVQ(batch_size=None)``. ``batch_size=None`` takes full batches. A
        number draws mini-batches over all partitions, from one permutation per epoch that the caller holds (8 bytes per
        sample). Early stopping, ``growth``, ``class_weight``, adaptive step sizes, initializers of your own and
        manifolds without ``pull`` and ``exp`` are not supported. :class:`rplvq.TangentSpace` learns its reference from
        at most 20,000 evenly spaced samples.
    persist : bool, default=True
        Whether the encoded samples stay in the workers' memory (Dask moves what does not fit to disk). False reads and
        encodes them again in every step.

    Attributes
    ----------
    estimator_ : RiemannianLVQ
        The fitted classifier. It is an ordinary one, which can be saved and predicts without Dask.
    classes_, prototypes_, prototype_labels_, sigma2_, step_size_, choice_, n_epochs_, history_
        As for :class:`rplvq.RiemannianLVQ`.

    Notes
    -----
    The methods after fit raise NotFittedError before fit, and ValueError if X has partitions of unknown size or a
    sample is invalid; invalid samples are found when the result is computed. They take

    X : dask.array.Array of shape (N, n, n), or (N, d) for vectors
        Samples; a NumPy array is converted.

    Examples
    --------
    >>> import dask.array as da
    >>> from rplvq import RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> from rplvq.distributed import DistributedLVQ
    >>> X, y = make_syn1(n_per_class=20, random_state=0)
    >>> model = DistributedLVQ(RiemannianLVQ(batch_size=None, max_epochs=5, random_state=0))
    >>> model = model.fit(da.from_array(X, chunks=(25, 10, 10)), y)
    >>> labels = model.predict(da.from_array(X, chunks=(25, 10, 10)))
    >>> labels.shape, bool((labels.compute() == model.estimator_.predict(X)).all())
    ((80,), True)
    >>> bool(model.estimator_.score(X, y) > 0.9)
    True
    """

    def __init__(self, estimator: RiemannianLVQ | None = None, *, persist: bool = True) -> None:
        self.estimator = estimator
        self.persist = persist

    def fit(self, X: Any, y: Any, *, groups: Any = None, resume: str | PathLike[str] | None = None) -> Self:
        """Learn prototypes.

        Parameters
        ----------
        X : dask.array.Array of shape (N, n, n), or (N, d) for vectors
            Samples; a NumPy array is converted.
        y : dask.array.Array or array-like of shape (N,) or (N, C)
            Labels, or class probabilities, as for :meth:`rplvq.RiemannianLVQ.fit`. This process collects all of them to
            check them, and sends them to the workers once.
        groups : dask.array.Array or array-like of shape (N,), optional
            Groups of the samples, by which trials hold samples out, as for :meth:`rplvq.RiemannianLVQ.fit`. This
            process collects all of them.
        resume : path-like, optional
            File of a :class:`rplvq.Checkpoint` of a fit with the same samples in the same partitions, parameters and
            seed. Training continues from there, as in :meth:`rplvq.RiemannianLVQ.fit`.

        Returns
        -------
        self : DistributedLVQ

        Raises
        ------
        ValueError
            If an argument or a parameter is invalid; the message names the first such index of the whole array. Also
            if the checkpoint is damaged or belongs to another fit. Nothing is changed then.
        FloatingPointError
            If training diverges.
        OSError
            If the checkpoint cannot be read.
        """
        model = RiemannianLVQ(batch_size=None) if self.estimator is None else clone(self.estimator)
        with single_blas_thread(matrix_size(X)):
            manifold = self._check(model)
            samples = in_blocks(X)
            classes, targets = check_labels(collected(y), len(samples))
            numbers = number_groups(collected(groups), len(samples))
            manifold = _referenced(manifold, samples, targets)
            partitions = partition(samples, targets, manifold, persist=self.persist)
            counts = resolve_counts(model.prototypes_per_class, classes)
            trainer = make_trainer(model, manifold, resolve_initializer(model.init, counts, classes))
            # Only checkpoints need the fingerprint of the samples, which takes a pass over them.
            digests = partitions.digests() if resume is not None or trainer.callbacks else np.empty(0)
            progress, origin = new_or_resumed(model, resume, classes, Samples(digests, np.empty(0)))
            rng = np.random.default_rng(origin.seed)
            if resume is not None and progress is not None:
                require_valid(resume, progress, manifold, len(classes), trainer.max_epochs)
            if progress is None:
                prototypes, labels = first_prototypes(trainer.initializer, manifold, partitions, len(classes), rng)
                rows = _some_rows(len(partitions))
                some = attrs.evolve(partitions.take(rows), groups=None if numbers is None else numbers[rows])
                first = prototypes, labels, some
                trainer, progress = begin_training(model, trainer, *first, len(classes), rng, n_samples=len(partitions))
            training = DistributedTrainer(trainer, partitions)
            for latest in training.epochs(progress, rng, origin):
                progress = latest
            state, history = progress.result()
            if not history:
                history = untrained_history(state, training.score(state))
            store(model, samples[:1].compute(), trainer, state, classes, rng, history, choice=progress.choice)
            edge = edge_trouble(manifold, state.prototypes, model.prototype_labels_)
        warn_of([edge, step_trouble(history, len(partitions), state.step_schedule)], 3)
        self.estimator_ = model
        for name in FITTED:
            setattr(self, name, getattr(model, name))
        return self

    def predict(self, X: Any) -> Any:
        """Predict labels, lazily.

        Returns
        -------
        dask.array.Array of shape (N,)
            Labels, in the partitions of X.
        """
        return self._lazily(X, "predict", None)

    def predict_proba(self, X: Any) -> Any:
        """Compute class probabilities, lazily.

        Returns
        -------
        dask.array.Array of shape (N, C)
            Columns in the order of ``classes_``; rows sum to one.
        """
        return self._lazily(X, "predict_proba", "classes_")

    def transform(self, X: Any) -> Any:
        """Compute the distances, not squared, of samples to the prototypes, lazily.

        Returns
        -------
        dask.array.Array of shape (N, K)
            In the order of ``prototype_labels_``.
        """
        return self._lazily(X, "transform", "prototype_labels_")

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the accuracy at once.

        Parameters
        ----------
        y : dask.array.Array or array-like of shape (N,)
            Labels.
        sample_weight : dask.array.Array or ndarray of shape (N,), optional
            Weights of the samples.

        Returns
        -------
        float
            Share of the samples whose label is predicted.
        """
        return accuracy(collected(self.predict(X)), collected(y), self.classes_, collected(sample_weight))

    def _lazily(self, X: Any, method: str, columns: str | None) -> Any:
        """Apply a method of ``estimator_``; the result has one column per entry of the attribute ``columns``."""
        check_is_fitted(self)
        samples, widths = in_blocks(X), [] if columns is None else [len(getattr(self, columns))]
        if samples.ndim > self.prototypes_.ndim:
            point = ", ".join(map(str, self.prototypes_.shape[1:]))
            raise ValueError(
                f"X must have {self.prototypes_.ndim} axes, got shape {samples.shape}: for an image of points, pass "
                f"X.reshape(-1, {point}), and reshape the answer"
            )
        nothing = np.empty((0, *widths), dtype=self.classes_.dtype if method == "predict" else float)
        return samples.map_blocks(
            _apply,
            model=self.estimator_,
            method=method,
            nothing=nothing,
            dtype=nothing.dtype,
            drop_axis=list(range(1, samples.ndim)),
            new_axis=[1] if widths else None,
            chunks=(samples.chunks[0], *((width,) for width in widths)),
            meta=nothing,
        )

    def _check(self, model: RiemannianLVQ) -> Manifold[Any]:
        """Return the manifold; refuse parameters that this estimator does not support."""
        manifold = manifold_of(model)
        if not is_additive(manifold):
            raise ValueError(f"metric={model.metric!r} has no pull and exp, which distributed training needs")
        if resolve_early_stopping(model.early_stopping) is not None:
            raise ValueError("early_stopping=True is not supported by DistributedLVQ: pass a callback that stops")
        if callables("growth", model.growth):
            raise ValueError(f"growth={model.growth!r} is not supported by DistributedLVQ: leave it at ()")
        if hasattr(resolve_step_size(model.step_size), "update"):
            raise ValueError(f"step_size={model.step_size!r} is not supported by DistributedLVQ: pass a schedule")
        if model.class_weight is not None:
            raise ValueError(f"class_weight={model.class_weight!r} is not supported by DistributedLVQ: pass None")
        return manifold


def _some_rows(n_samples: int) -> Array:
    """Return the indices of the evenly spaced samples that this process collects."""
    return np.unique(np.linspace(0, n_samples - 1, min(SAMPLE, n_samples)).astype(int))


def _referenced(manifold: Manifold[Any], samples: Any, targets: Array) -> Manifold[Any]:
    """Return the manifold with its reference, if it needs one, learned from the evenly spaced samples."""
    if not hasattr(manifold, "referenced"):
        return manifold
    rows = _some_rows(len(samples))
    try:
        codes = np.asarray(ambient_of(manifold).encode(collected(samples[rows])))
    except PointError as error:
        raise PointError(int(rows[error.index]), error.reason, error.name) from None
    return referenced(manifold, Samples(codes, targets[rows]).canonical())[0]


def _apply(block: Array, model: RiemannianLVQ, method: str, nothing: Array, block_info: Any) -> Array:
    """Apply a method to a partition; the answer for an empty one is ``nothing``, which has the same columns and type.

    Dask passes ``block_info``, which says where the partition begins in the whole array.
    """
    try:
        return np.asarray(getattr(model, method)(block)) if len(block) else nothing
    except PointError as error:
        raise error.shifted(block_info[0]["array-location"][0][0]) from None
