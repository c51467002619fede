"""DistributedLVQ: a RiemannianLVQ that is fitted from a Dask array and predicts lazily."""

from collections.abc import Mapping
from operator import attrgetter
from os import PathLike
from typing import Any, Self

import attrs
import dask.array as da
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from rplvq.arrays import Samples, accuracy, evenly_spaced_rows, matrix_size, single_blas_thread
from rplvq.distributed._partitions import DaskArrayLike, Partitions, collected, digest, in_blocks, require_same_versions
from rplvq.distributed._parts import encoded_blocks, held_out, parts_of_blocks, reencoded
from rplvq.distributed._training import DistributedTrainer, first_prototypes, mean_of_parts
from rplvq.estimators import (
    RiemannianLVQ,
    ambient_of,
    begin_training,
    initializer_of,
    make_trainer,
    manifold_of,
    new_or_resumed,
    planned,
    referenced,
    resolve_counts,
    resolve_early_stopping,
    resolve_step_size,
    store,
)
from rplvq.exceptions import PointError
from rplvq.io import require_valid
from rplvq.manifolds import is_additive
from rplvq.parts import callables, kernel_of, require_count
from rplvq.protocols import AnyManifold, Array
from rplvq.training import Decision, Progress, Trainer, edge_trouble, one_decision, step_trouble, warn_of

SAMPLE = 20_000  # number of evenly spaced samples that this process collects to choose from
FEWEST = 25_000  # least number of samples of a part, if prototypes are averaged once per epoch
FEWEST_EACH = 2_500  # the same per prototype

FITTED = (  # attributes of the fitted classifier that this estimator has, too
    "classes_", "prototypes_", "prototype_labels_", "sigma2_", "step_size_", "choice_", "n_epochs_", "history_",
)  # fmt: skip


class DistributedLVQ(ClassifierMixin, BaseEstimator):
    """Prototypes learned from a Dask array of samples that no single machine has to hold.

    Workers run local epochs: each sweeps its parts as :class:`rplvq.Trainer` does, and the prototypes are averaged by
    the Riemannian mean after each round. One part of up to 20,000 samples gives the fit of
    :class:`rplvq.RiemannianLVQ`, bit for bit; with weights up to rounding, and early stopping holds out other samples.
    Workers, threads, retries and the order of partitions change no bit. Dask computes in threads or a cluster.

    Parameters
    ----------
    estimator : RiemannianLVQ, optional
        Parts and parameters; by default ``RiemannianLVQ()``. ``batch_size=None`` takes full batches, one round trip per
        step. Not supported are ``growth``, adaptive step sizes, and metrics without ``pull`` and ``exp`` except
        :class:`rplvq.LearnedLogEuclidean`. All choices, references such as that of :class:`rplvq.TangentSpace`, and
        first prototypes other than class means come from at most 20,000 evenly spaced samples.
    rounds : int, default=1
        Number of averages per epoch. Partitions are joined to parts of at least 2500 samples per prototype, or 25,000,
        divided by ``rounds``: more rounds let more workers share few samples.
    persist : bool, default=True
        Whether the encoded samples stay in the workers' memory or on their disks. False encodes them in every step.
    **others
        Parameters of the classifier have their place in it: a TypeError says so.

    Attributes
    ----------
    estimator_ : RiemannianLVQ
        The fitted classifier. It is an ordinary one, which can be saved and predicts without Dask.
    classes_, prototypes_, prototype_labels_, sigma2_, step_size_, choice_, n_epochs_, history_
        As for :class:`rplvq.RiemannianLVQ`.

    Notes
    -----
    Methods raise NotFittedError before fit, and ValueError at unknown sizes, or at bad samples when computed. They take

    X : dask.array.Array of shape (N, n, n), or (N, d) for vectors
        Samples; a NumPy array is cut into blocks.

    Examples
    --------
    >>> import dask.array as da
    >>> from rplvq import RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> from rplvq.distributed import DistributedLVQ
    >>> X, y = make_syn1(n_per_class=20, random_state=0)
    >>> model = DistributedLVQ(RiemannianLVQ(max_epochs=5, random_state=0))
    >>> model = model.fit(da.from_array(X, chunks=(25, 10, 10)), y)
    >>> labels = model.predict(da.from_array(X, chunks=(25, 10, 10)))
    >>> labels.shape, bool((labels.compute() == model.estimator_.predict(X)).all()), model.estimator_.score(X, y) > 0.9
    ((80,), True, True)
    """

    def __init__(
        self, estimator: RiemannianLVQ | None = None, *, rounds: int = 1, persist: bool = True, **others: object
    ) -> None:
        if others:
            name, value = next(iter(others.items()))
            is_known = name in RiemannianLVQ().get_params(deep=False)
            advice = f": write DistributedLVQ(RiemannianLVQ({name}={value!r}))" if is_known else ""
            raise TypeError(f"DistributedLVQ has no parameter {name!r}{advice}")
        self.estimator = estimator
        self.rounds = rounds
        self.persist = persist

    def fit(
        self, X: DaskArrayLike, y: DaskArrayLike, sample_weight: DaskArrayLike | None = None, *,
        groups: DaskArrayLike | None = None, resume: str | PathLike[str] | None = None,
    ) -> Self:  # fmt: skip
        """Learn prototypes, and return self.

        Parameters
        ----------
        y, sample_weight, groups : dask.array.Array or array-like of shape (N,), y also (N, C)
            As for :meth:`rplvq.RiemannianLVQ.fit`. Of arrays of Dask only distinct values come into this process.
        resume : path-like, optional
            File of a :class:`rplvq.Checkpoint` of a fit with the same samples in the same partitions, parameters and
            seed. Training continues from there, as in :meth:`rplvq.RiemannianLVQ.fit`.

        Raises
        ------
        ValueError
            If an argument or a parameter is invalid; the message names the first such index of a partition, counted in
            the whole array. Also if the checkpoint is damaged or belongs to another fit. Nothing is changed then.
        FloatingPointError, OSError, RuntimeError
            If training diverges; if the checkpoint cannot be read; if a worker has another version of rplvq, NumPy or
            numba than this process.
        """
        model = RiemannianLVQ() if self.estimator is None else clone(self.estimator)
        with single_blas_thread(matrix_size(X)):
            manifold = self._check(model)
            least = FEWEST // self.rounds
            X = in_blocks(X, least)
            require_same_versions()
            of_samples = (y, sample_weight, groups, ambient_of(manifold))
            classes, blocks = encoded_blocks(X, *of_samples, persist=self.persist)
            counts = resolve_counts(model.prototypes_per_class, classes)
            size = model.batch_size
            # Parts of few samples per prototype would give means of little worth. Full batches are only summed.
            fewest = None if size is None else max(least, FEWEST_EACH * sum(counts) // self.rounds, size)
            parts, sizes = parts_of_blocks(blocks, model.class_weight, classes, fewest)
            del blocks  # the workers need not keep both
            initializer = initializer_of(model, counts, classes, np.arange(len(classes)), sizes)
            trainer = make_trainer(model, manifold, initializer)
            # Only a checkpoint needs them, and they read all samples once more.
            digests = b"".join(parts.map(digest)) if resume is not None or trainer.callbacks else b""
            known = Samples(np.frombuffer(digests, dtype=np.uint8), np.empty(0))
            progress, origin = new_or_resumed(model, resume, classes, known)
            rng = np.random.default_rng(origin.seed)
            training, some = _placed(trainer, parts, np.repeat(np.arange(len(counts)), counts), rng)
            trainer = planned(model, training.trainer, training.n_visits)
            if resume is not None and progress is not None:
                require_valid(resume, progress, trainer.manifold, len(classes), trainer.max_epochs)
            training = attrs.evolve(training, trainer=trainer, rounds=self.rounds)
            training, progress = _begun(model, training, some, len(classes), progress, rng)
            for latest in training.epochs(progress, rng, origin):
                progress = latest
            state, history = progress.result()
            history = history or training.untrained(state)
            fitted = (training.trainer, state, classes, rng, history)
            first = X[:1].compute() if X.ndim == 1 else np.empty((1, *X.shape[1:]))  # an object array of matrices
            store(model, first, *fitted, choice=progress.choice, samples=some)
            edge = edge_trouble(training.trainer.manifold, state.prototypes, model.prototype_labels_)
        warn_of([edge, step_trouble(history, training.n_visits, state.step_schedule)], 2)
        self.estimator_ = model
        for name in FITTED:
            setattr(self, name, getattr(model, name))
        return self

    def predict(self, X: DaskArrayLike) -> da.Array:
        """Predict labels of samples X (N, ...), lazily: a dask.array.Array (N,), in the partitions of X."""
        return self._lazily(X, "predict", None)

    def predict_proba(self, X: DaskArrayLike) -> da.Array:
        """Compute class probabilities, lazily: a dask.array.Array of shape (N, C), in the order of ``classes_``."""
        return self._lazily(X, "predict_proba", "classes_")

    def transform(self, X: DaskArrayLike) -> da.Array:
        """Compute the distances, not squared, to the prototypes, lazily: a dask.array.Array of shape (N, K)."""
        return self._lazily(X, "transform", "prototype_labels_")

    def score(self, X: DaskArrayLike, y: DaskArrayLike, sample_weight: DaskArrayLike | None = None) -> float:
        """Compute the accuracy at once; ``y`` and ``sample_weight`` (N,) are arrays of Dask or of NumPy."""
        return accuracy(collected(self.predict(X)), collected(y), self.classes_, collected(sample_weight))

    def _lazily(self, X: DaskArrayLike, method: str, columns: str | None) -> da.Array:
        """Apply a method of ``estimator_``; the result has one column per entry of the attribute ``columns``."""
        check_is_fitted(self)
        samples = in_blocks(X)
        widths = [] if columns is None else [len(getattr(self, columns))]
        if samples.ndim > self.prototypes_.ndim:
            point = ", ".join(map(str, self.prototypes_.shape[1:]))
            raise ValueError(
                f"X must have {self.prototypes_.ndim} axes, got shape {samples.shape}: for an image of points, pass "
                f"X.reshape(-1, {point}), and reshape the answer"
            )
        # Without it, Dask would call the method on an empty array to learn the type of the answer.
        nothing = np.empty((0, *widths), dtype=self.classes_.dtype if method == "predict" else float)
        call = {"model": self.estimator_, "method": method, "nothing": nothing}
        axes = {"drop_axis": list(range(1, samples.ndim)), "new_axis": [1] if widths else None}
        chunks = (samples.chunks[0], *((width,) for width in widths))
        return samples.map_blocks(_apply, **call, **axes, chunks=chunks, dtype=nothing.dtype, meta=nothing)

    def _check(self, model: RiemannianLVQ) -> AnyManifold:
        """Return the manifold; refuse parameters that this estimator does not support."""
        manifold = manifold_of(model)
        require_count("rounds", self.rounds, 1)
        learned = kernel_of(manifold, "connect", "move") == "learned_log_euclidean" and model.batch_size is not None
        if not (is_additive(manifold) or learned):
            raise ValueError(f"metric={model.metric!r} has no pull and exp, which distributed training needs")
        if callables("growth", model.growth):
            raise ValueError(f"growth={model.growth!r} is not supported by DistributedLVQ: leave it at ()")
        if hasattr(resolve_step_size(model.step_size), "update"):
            raise ValueError(f"step_size={model.step_size!r} is not supported by DistributedLVQ: pass a schedule")
        resolve_early_stopping(model.early_stopping)
        return manifold


def _placed(
    trainer: Trainer, parts: Partitions, labels: Array, rng: np.random.Generator
) -> tuple[DistributedTrainer, Samples]:
    """Return what trains, with held-out samples and a learned reference, and at most SAMPLE samples."""
    held = None
    if trainer.early_stopping is not None:
        parts, held = held_out(parts, labels, trainer.early_stopping.fraction, rng)
    some = parts.take(evenly_spaced_rows(len(parts), SAMPLE)).canonical()
    manifold, some = referenced(trainer.manifold, attrs.evolve(some, codes=some.codes[:]))
    if manifold is not trainer.manifold:
        parts = parts.made(reencoded, manifold)
        held = None if held is None else held.made(reencoded, manifold)
    n_visits, total = (sum(values) for values in zip(*parts.map(attrgetter("n_visits", "total_weight")), strict=True))
    return DistributedTrainer(attrs.evolve(trainer, manifold=manifold), parts, n_visits, total, held), some


def _begun(
    model: RiemannianLVQ, training: DistributedTrainer, some: Samples, n_classes: int, progress: Progress | None,
    rng: np.random.Generator,
) -> tuple[DistributedTrainer, Progress]:  # fmt: skip
    """Return what trains, with one decision for all workers whether steps run compiled, and the first progress."""
    trainer = training.trainer
    parts = training.partitions
    held = training.held_out
    decision = Decision(training.n_visits * trainer.max_epochs, trainer.verbose)
    with one_decision(decision):
        if progress is None:
            is_all = len(parts) <= SAMPLE
            first, labels, of_parts = first_prototypes(trainer, parts, some, n_classes, rng, is_all=is_all)
            n_samples = training.total_weight
            trainer, progress = begin_training(model, trainer, first, labels, some, n_classes, rng, n_samples=n_samples)
            state = progress.state
            if of_parts and np.array_equal(np.asarray(state.prototypes), first):  # no others were chosen
                state = state._replace(prototypes=mean_of_parts(trainer.manifold, of_parts))
                progress = progress._replace(state=state, best=state)
            if held is not None:
                progress = progress._replace(best_cost=training.score(progress.state, held).cost)
        if decision.is_compiled is None and not progress.stopped:
            state = progress.state.at_epoch(1, trainer.max_epochs)
            trainer.sweep(state, some.at(slice(0, 1)), np.random.default_rng(0))
    return attrs.evolve(training, trainer=trainer, decision=attrs.evolve(decision, verbose=0)), progress


def _apply(block: Array, model: RiemannianLVQ, method: str, nothing: Array, block_info: Mapping[int, Any]) -> Array:
    """Apply a method to a partition, or return ``nothing`` for an empty one; Dask says where it begins."""
    try:
        return np.asarray(getattr(model, method)(block)) if len(block) else nothing
    except PointError as error:
        raise error.shifted(block_info[0]["array-location"][0][0]) from None
