"""RiemannianLVQ: the scikit-learn classifier over any manifold, cost, schedules and initializer."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from numbers import Integral
from os import PathLike
from typing import Any, Self

import attrs
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import validate_data

from rplvq.averaging import Averaging
from rplvq.calls import Call, receive
from rplvq.checkpoint import LoadedCheckpoint, load_checkpoint, require_same_origin
from rplvq.checks import require_count
from rplvq.costs.algebra import among
from rplvq.epochs import Callback
from rplvq.exceptions import TrainingInterruptedWarning
from rplvq.growth import Growth
from rplvq.heldout import HeldOut, named_sigma2
from rplvq.history import append_columns
from rplvq.initializers import hard_targets
from rplvq.labels import check_class_sizes, check_labels, check_weights
from rplvq.late import known_classes, present_classes
from rplvq.learned import is_learned_on, require_training_data
from rplvq.manifolds import EuclideanVectors
from rplvq.names import resolve_cost, resolve_counts, resolve_initializer, resolve_manifold
from rplvq.params import PartsMixin
from rplvq.persistence import save_model
from rplvq.prediction import PrototypePredictor
from rplvq.progress import Origin, Progress, RunData
from rplvq.protocols import Array, Cost, Initializer, Manifold, Schedule
from rplvq.samples import encoded, subset
from rplvq.solvers import check_solver, minimise
from rplvq.steps import State
from rplvq.streaming import Stream, drop_weightless, follow_on, kept_of, recent_samples
from rplvq.sweeps import canonical_order, visits
from rplvq.trainer import Trainer
from rplvq.watch import decoded, edge_trouble, step_trouble, warn_of

__all__ = ["RiemannianLVQ"]


class RiemannianLVQ(PrototypePredictor, PartsMixin):
    """Probabilistic learning vector quantization on a Riemannian manifold.

    Labelled prototypes W_k are moved by stochastic Riemannian gradient descent so that the mixture
    ``p(k | X) = softmax(-d^2(X, W_k) / (2 sigma2))`` predicts the labels. With the default metric and cost this is
    PLRSQ (Tang, Feng, Tino, Si, Ji, "Probabilistic Learning Vector Quantization on Manifold of Symmetric
    Positive Definite Matrices"); with ``max_epochs=0`` it is the classifier of minimum distance to mean.

    Parameters
    ----------
    manifold : str, Manifold or pymanopt manifold, default="affine_invariant"
        "affine_invariant" (or pyRiemann's "riemann"), "log_euclidean" ("logeuclid"), "euclidean"
        ("euclid": Frobenius distance with projection), "log_cholesky" ("logchol"), "bures_wasserstein"
        ("wasserstein"), "learned_log_euclidean"; "euclidean_vectors" for plain vectors; or an object.
    cost : str or Cost, default="rslvq"
        "rslvq", "plvq", "glvq" or an object.
    sigma2 : float, Schedule, HeldOut, "auto", "blended", "half_median", "heldout" or None, default="auto"
        Variance of the mixture, in squared distances. "half_median" is half the median squared distance to the initial
        prototypes, the choice of the paper's authors. "blended" (:func:`rplvq.sigma2.blended_sigma2`) lies between that
        and the likeliest value under the initial prototypes, nearer to the former the fewer samples there are; a
        schedule with ``start=None`` starts there. "auto" tries both on held-out samples, in short runs that take .4 of
        the fit's time together, and trains with the better one; where few samples or epochs leave nothing to try, and
        in ``partial_fit`` and with other solvers, it is "blended". "heldout" (:class:`rplvq.HeldOut`) tries more, for
        less than the time of two more fits. :class:`rplvq.Learned` follows the gradient of held-out data.
    step_size : float, Schedule, "auto" or None, default=None
        None is the paper's ``n xi / 100 * 0.01^(t / T)`` in epoch t of T for n x n matrices and xi prototypes
        a class, in squared units of the data where distances carry units. "auto" is the same from a start of
        K sigma2 / N at most, for K prototypes and N samples: no sample weighs more than its share in the mean of its
        prototype's samples, which is safer where samples are few or classes overlap; sigma2 "auto" and "heldout" try
        that in place of None. "adaptive" (:class:`rplvq.AdaptiveStep`) measures distances and gradients on the way and
        needs no tuning.
    prototypes_per_class : int or dict, default=1
        Number of prototypes, for all classes or by label.
    init : {"mean", "kmeans"}, Initializer or (prototypes, labels), default="mean"
        Class means, k-means inside each class, an object, or K points with their labels.
    max_epochs : int, default=100
        Sweeps over the data.
    batch_size : int or None, default=1
        Samples a step; None takes all. A step follows the mean over its samples: give ``step_size`` B times the value
        of single samples for batches of B, up to some dozens, to learn as much in an epoch.
    decision : {"nearest", "posterior"}, default="nearest"
        Predict the class of the nearest prototype, as the paper does, or the most probable class. They
        can differ when a class has several prototypes.
    max_weight : float or None, default=1.0
        Cap on the weight of a logarithm. 1 carries a prototype all the way to the sample; the paper's step
        exceeds that when step_size > sigma2, and then diverges. None leaves weights as they are.
    max_step_length : float or None, default=None
        Cap on the length of one step; None is the manifold's own (10 on positive definite matrices).
    monitor : {"sweep", "epoch"}, default="sweep"
        Cost and training error in ``history_`` as met during the sweep, or by one more pass after it.
    early_stopping : bool, default=False
        Hold out ``validation_fraction`` of the data, stop when its cost has not fallen for
        ``n_iter_no_change`` epochs, and keep the best prototypes, the initial ones included.
    validation_fraction : float, default=0.1
        Share of the samples held out, stratified by class.
    n_iter_no_change : int, default=10
        Epochs to wait.
    tol : float, default=1e-4
        Relative fall of the validation cost that counts.
    compiled : {"auto", True, False}, default="auto"
        Whether steps run compiled (extra ``fast``, numba): "auto" where numba is installed and the parts are known
        to :mod:`rplvq.compiled`; True insists; False never. Results agree to rounding.
    average : bool or Averaging, default=False
        Whether the model is the geodesic mean of the prototypes over the epochs: True over the second half of them.
    solver : {"sgd", "cg", "trust_regions", "steepest_descent"}, default="sgd"
        Stochastic descent, or a solver of pymanopt's for the cost of all samples (:mod:`rplvq.solvers`) in at most
        ``max_epochs`` steps, with the last value of sigma2's schedule. Those know no step size, batches, cap on
        weights, average, early stopping or callbacks.
    growth : sequence of callable, default=()
        Rules that add and remove prototypes, such as :class:`rplvq.Grow` and :class:`rplvq.Prune`, between the epochs
        of fit and between the calls of partial_fit, in this order.
    horizon : int, default=1000
        Samples that count in a stream: after ``max_epochs`` epochs and calls, partial_fit with a ``step_size`` of None
        or "auto" takes steps of at least K sigma2 / horizon, so that learning does not end. Smaller follows faster.
    callbacks : sequence of callable, default=()
        Called with an :class:`rplvq.history.EpochReport` after each epoch; returning True stops.
    n_jobs : int or None, default=None
        Threads for distances in predict and transform, and for the decompositions of large mini-batches in fit;
        -1 takes all cores. No result depends on it.
    verbose : int, default=0
        1 shows a progress bar.
    random_state : int, RandomState or None, default=None
        Seed of the initial prototypes and the sweeps. A fit with a seed depends on the samples as a set,
        not on their order.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Labels, sorted; 0..C-1 for soft labels. Those announced to partial_fit are here before their first sample.
    prototypes_ : ndarray of shape (K, n, n)
        Prototypes as points.
    prototype_labels_ : ndarray of shape (K,)
        Label of each.
    sigma2_ : float
        Value at the end of training; probabilities use it.
    n_epochs_ : int
        Epochs trained.
    history_ : dict of str to ndarray
        One entry an epoch: epoch, cost, training_error, sigma2, step_size, n_capped, seconds, n_prototypes, and with
        early stopping validation_cost and validation_error.
    n_features_in_ : int
        n for matrices, d for vectors.

    Examples
    --------
    >>> from rplvq import RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=20, random_state=0)
    >>> model = RiemannianLVQ(max_epochs=5, random_state=0).fit(X, y)
    >>> model.prototypes_.shape
    (4, 10, 10)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        manifold: str | Manifold[Any] | Any = "affine_invariant",
        cost: str | Cost = "rslvq",
        *,
        sigma2: float | Schedule | HeldOut | str | None = "auto",
        step_size: float | Schedule | str | None = None,
        prototypes_per_class: int | Mapping[Any, int] = 1,
        init: str | Initializer | tuple[Any, Any] = "mean",
        max_epochs: int = 100,
        batch_size: int | None = 1,
        decision: str = "nearest",
        max_weight: float | None = 1.0,
        max_step_length: float | None = None,
        monitor: str = "sweep",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-4,
        compiled: bool | str = "auto",
        average: bool | Averaging = False,
        solver: str = "sgd",
        growth: Sequence[Growth] = (),
        horizon: int = 1000,
        callbacks: Sequence[Callback] = (),
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.manifold = manifold
        self.cost = cost
        self.sigma2 = sigma2
        self.step_size = step_size
        self.prototypes_per_class = prototypes_per_class
        self.init = init
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.decision = decision
        self.max_weight = max_weight
        self.max_step_length = max_step_length
        self.monitor = monitor
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.compiled = compiled
        self.average = average
        self.solver = solver
        self.growth = growth
        self.horizon = horizon
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, resume: str | PathLike[str] | None = None) -> Self:
        """Learn prototypes.

        Ctrl-C during training keeps what was learned: the model is that of the last whole epoch (the initial
        prototypes, if none is whole; the best epoch, with early stopping) and a warning says so. Ctrl-C before
        training leaves the model as it was. A fit that may be killed writes a :class:`rplvq.Checkpoint`.

        Parameters
        ----------
        X : array-like of shape (N, n, n), or (N, d) for vectors
            Samples: symmetric or Hermitian positive definite matrices.
        y : array-like of shape (N,) or (N, C)
            Labels of any sortable type, or class probabilities whose rows sum to one.
        sample_weight : array-like of shape (N,), optional
            Multiplicities: weight w counts as w copies of the sample, so that an epoch has
            ``sum(ceil(w))`` visits; scale weights to mean 1 if they are not counts.
        resume : path-like, optional
            File of a :class:`rplvq.Checkpoint` of a fit with the same data, parameters and seed. Training goes on from
            there, to the same prototypes, bit for bit on the same machine and libraries, as if it had
            never ended. None begins anew: ``resume=path if os.path.exists(path) else None`` suits a script
            that is started again until it is done.

        Returns
        -------
        self : RiemannianLVQ

        Raises
        ------
        ValueError
            If an argument or a parameter is invalid, or the checkpoint is damaged or of another fit; nothing is
            changed then.
        FloatingPointError
            If training diverges, which needs max_weight above its default, or a prototype leaves a manifold of your
            own.
        OSError
            If the checkpoint cannot be read.

        Warns
        -----
        TrainingInterruptedWarning
            After Ctrl-C; the model is complete by then.
        DivergenceWarning
            If a prototype ended at the edge of the manifold, or most steps were cut; with what helps.
        """
        manifold, codes, classes, targets, weights = self._check(X, y, sample_weight)
        if check_solver(self, manifold):
            return self._solve(X, manifold, codes, classes, targets, weights, resume)
        loaded = None if resume is None else load_checkpoint(resume)
        seed = self._draw_seed() if loaded is None else self._seed_of(loaded)
        origin = Origin(self.get_params(deep=False), seed, classes, codes, targets, weights)
        if loaded is not None and resume is not None:
            require_same_origin(resume, loaded, origin)
        rng, validation = np.random.default_rng(seed), None
        if self.early_stopping or is_learned_on(self.sigma2, "held_out"):
            kept, held = self._split(targets, rng)
            validation = (subset(codes, held), targets[held], None if weights is None else weights[held])
            codes, targets, weights = subset(codes, kept), targets[kept], None if weights is None else weights[kept]
        trainer = self._trainer(manifold, self._initializer(classes, targets, weights))
        data = codes, targets, rng, weights, validation
        if loaded is None:
            progress = trainer.begin(trainer.init(codes, targets, len(classes), rng, weights), *data)
        else:
            progress = loaded.progress
        return self._train(X, trainer, progress, data, origin)

    def _solve(
        self,
        X: Any,
        manifold: Manifold[Any],
        codes: Array,
        classes: Array,
        targets: Array,
        weights: Array | None,
        resume: object,
    ) -> Self:
        """Train by a solver of pymanopt's, from the prototypes of the initializer."""
        if resume is not None:
            raise ValueError(f"resume={resume!r} is for solver='sgd' only: leave it out with {self.solver!r}")
        rng = np.random.default_rng(self._draw_seed())
        trainer = self._trainer(manifold, self._initializer(classes, targets, weights))
        trainer = attrs.evolve(trainer, sigma2=named_sigma2(self.sigma2, auto="blended"))
        state = trainer.init(codes, targets, len(classes), rng, weights)
        state, history = minimise(
            self.solver,
            manifold,
            trainer.cost,
            state,
            codes,
            targets,
            weights,
            max_iterations=self.max_epochs,
            max_length=trainer.max_length,
            verbose=self.verbose,
        )
        self._store(X, trainer, state, classes, rng, history)
        warn_of([edge_trouble(manifold, state, self.prototype_labels_)], 3)
        return self

    def _train(self, X: Any, trainer: Trainer, progress: Progress, data: RunData, origin: Origin) -> Self:
        """Train from where ``progress`` stands, and keep the last whole epoch whatever interrupts the next."""
        rng, interrupted = data[2], False
        try:
            for latest in trainer.epochs(progress, *data, origin):
                progress = latest
        except KeyboardInterrupt:
            rng.bit_generator.state, interrupted = progress.rng, True
        state, history = progress.result()
        self._store(X, trainer, state, origin.classes, rng, history)
        if interrupted:
            warnings.warn(
                f"training was interrupted after {progress.state.epoch} of {trainer.max_epochs} epochs: the model is "
                "that of the last whole epoch. partial_fit trains it on",
                TrainingInterruptedWarning,
                stacklevel=3,
            )
        n_visits = len(visits(len(data[0]), data[3])[0])
        warn_of(
            [edge_trouble(trainer.manifold, state, self.prototype_labels_), step_trouble(state, history, n_visits)], 3
        )
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on from the present prototypes with one sweep over a batch of samples.

        The first call chooses the initial prototypes, sigma2 and the start of the step size (if they are not given)
        from its batch; later calls keep its metric, cost and schedules. Schedules advance by one epoch a call up to
        ``max_epochs``, where they stay; a default step size is then one for streams, see ``horizon``. After fit, that
        is from the first call on. Rules of ``growth`` see the latest samples, this call's included, before the sweep.
        Callbacks are not called. Ctrl-C leaves the model as it was before the call.

        A class that turns up late gets prototypes by ``init`` (at its mean, where that is prototypes) from its samples
        in the call, one sample is enough: as many as ``prototypes_per_class``, or as it has samples. Until 10 samples
        for each have come, they are set anew from all of them in each call, and trained from there. From the first
        sample on the class is predicted; before, it has probability 0.

        Parameters
        ----------
        X : array-like of shape (N, n, n), or (N, d) for vectors
            Samples.
        y : array-like of shape (N,) or (N, C)
            Labels.
        classes : array-like of shape (C,), optional
            All labels that will come. If the first call is given none, labels that are not known yet are welcome in any
            call; after fit they are not. A later call may name more than are known, never fewer.
        sample_weight : array-like of shape (N,), optional
            As for fit.

        Returns
        -------
        self : RiemannianLVQ

        Raises
        ------
        ValueError
            As for fit; also at a label that is not among the classes where those were named, or of another type than
            they; if the first batch holds one class only; at soft labels while a class waits for its first sample.
        FloatingPointError
            As for fit.

        Examples
        --------
        >>> from rplvq import RiemannianLVQ
        >>> from rplvq.datasets import make_syn1
        >>> X, y = make_syn1(n_per_class=20, random_state=0)
        >>> model = RiemannianLVQ(random_state=0)
        >>> for rows in (slice(0, 80, 2), slice(1, 80, 2)):
        ...     model = model.partial_fit(X[rows], y[rows])
        >>> model.n_epochs_
        2

        A class that nobody announced:

        >>> X, y = np.array([[0.0], [1.0], [4.0], [5.0]]), ["low", "low", "high", "high"]
        >>> model = RiemannianLVQ("euclidean_vectors", sigma2=1.0).partial_fit(X, y)
        >>> model.partial_fit([[9.0]], ["higher"]).predict([[0.0], [8.0]])
        array(['low', 'higher'], dtype='<U6')
        """
        if check_solver(self, resolve_manifold(self.manifold)):
            raise ValueError(f"solver={self.solver!r} sees all samples at once: partial_fit needs solver='sgd'")
        require_count("horizon", self.horizon, 1)
        first = not hasattr(self, "_state")
        stream = Stream(classes is None) if first else self.__dict__.get("_stream", Stream())
        known, more = known_classes(classes, None if first else self.classes_), stream.is_open and not first
        manifold, codes, known, targets, weights = self._check(X, y, sample_weight, known, more=more)
        codes, targets, weights = (codes, targets, weights) if first else drop_weightless(codes, targets, weights)
        if first:
            require_training_data(self.sigma2)
            rng = np.random.default_rng(self._draw_seed())
            met, trainer, state = self._begin(manifold, codes, known, targets, weights, rng)
            recent = recent_samples(self.growth, None, lambda: kept_of(codes, targets, weights, known))
            stream = stream._replace(cost=resolve_cost(self.cost), recent=recent)
        else:
            validate_data(self, X, skip_check_array=True, reset=False)
            self._require_same_shape(codes)
            rng = np.random.default_rng(0)  # a copy: the model's own moves on with the model
            rng.bit_generator.state = self._rng.bit_generator.state
            met, trainer, state, stream = receive(self, Call(known, codes, targets, weights), stream, rng)
        began = follow_on(trainer, state, self.horizon)
        within = np.searchsorted(met, targets) if targets.ndim == 1 else targets
        state, row = trainer.sweep_and_record(began, codes, within, rng, weights)
        history = append_columns({} if first else self.history_, row)
        return self._store(X if first else None, trainer, state, known, rng, history, known[met], stream)

    def _begin(
        self,
        manifold: Manifold[Any],
        codes: Array,
        known: Array,
        targets: Array,
        weights: Array | None,
        rng: np.random.Generator,
    ) -> tuple[Array, Trainer, State]:
        """Choose prototypes in the first call of a stream: indices (M,) of the classes met, trainer, state."""
        given = isinstance(self.init, (tuple, list))
        met = np.arange(len(known)) if given else present_classes(targets, len(known))
        if len(met) < 2:
            raise ValueError(
                f"the first call holds samples of one class only, {known[met].tolist()}: two are needed to begin"
            )
        within = np.searchsorted(met, targets) if targets.ndim == 1 else targets
        trainer = _to_train(self._trainer(manifold, self._initializer(known, within, weights, met)))
        if len(met) < len(known):
            trainer = attrs.evolve(trainer, cost=among(trainer.cost, met))
        return met, trainer, trainer.init(codes, within, len(met), rng, weights)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to one .npz file without pickle; :func:`rplvq.load_model` reads it.

        Parameters
        ----------
        path : path-like
            File to write; an old file is replaced only once the new one is whole.

        Raises
        ------
        NotFittedError
            Before fit.
        ValueError
            If a part cannot be stored: see :mod:`rplvq.persistence`.
        OSError
            If the file cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> from rplvq import RiemannianLVQ, load_model
        >>> from rplvq.datasets import make_syn1
        >>> X, y = make_syn1(n_per_class=5, random_state=0)
        >>> model = RiemannianLVQ(max_epochs=2, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model.npz")
        ...     again = load_model(f"{folder}/model.npz")
        >>> bool((again.predict(X) == model.predict(X)).all())
        True
        """
        save_model(self, path)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        vectors = self.manifold == "euclidean_vectors" or isinstance(self.manifold, EuclideanVectors)
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = vectors, not vectors
        return tags

    def _draw_seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _seed_of(self, loaded: LoadedCheckpoint) -> int:
        """Seed of a resumed fit: drawn anew from a number, which must give the same; else the checkpoint's."""
        if isinstance(self.random_state, Integral) or loaded.origin is None:
            return self._draw_seed()
        return int(loaded.origin["seed"])

    def _check(
        self, X: Any, y: Any, sample_weight: Any, classes: Array | None = None, *, more: bool = False
    ) -> tuple[Manifold[Any], Array, Array, Array, Array | None]:
        """Check data before anything is changed: manifold, codes, classes, targets, weights, in canonical order."""
        self._by_posterior()
        manifold = resolve_manifold(self.manifold)
        codes = encoded(manifold, X)
        found, targets = check_labels(y, len(codes), classes, more=more)
        weights = check_weights(sample_weight, len(codes))
        order = canonical_order(codes, targets, weights)
        return manifold, subset(codes, order), found, targets[order], None if weights is None else weights[order]

    def _initializer(
        self, classes: Array, targets: Array, weights: Array | None, met: Array | None = None
    ) -> Initializer:
        """Return an initializer for all classes, or those of indices ``met`` (M,), among which targets then are."""
        counts = resolve_counts(self.prototypes_per_class, classes)
        if met is not None:
            counts, classes = tuple(counts[index] for index in met), classes[met]
        if not isinstance(self.init, (tuple, list)):
            check_class_sizes(targets, weights, counts, classes)
        return resolve_initializer(self.init, counts, classes)

    def _trainer(self, manifold: Manifold[Any], initializer: Initializer) -> Trainer:
        return Trainer(
            manifold,
            resolve_cost(self.cost),
            initializer,
            self.sigma2,
            self.step_size,
            max_epochs=self.max_epochs,
            batch_size=self.batch_size,
            max_weight=self.max_weight,
            max_step_length=self.max_step_length,
            monitor=self.monitor,
            patience=self.n_iter_no_change if self.early_stopping else None,
            tol=self.tol,
            growth=tuple(self.growth or ()),
            callbacks=tuple(self.callbacks or ()),
            verbose=self.verbose,
            compiled=self.compiled,
            average=self.average,
            n_jobs=self.n_jobs,
        )

    def _split(self, targets: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Rows that train and rows held out, stratified by class."""
        share = self.validation_fraction
        if isinstance(share, (bool, str)) or share is None or not 0 < share < 1:
            raise ValueError(f"validation_fraction must lie between 0 and 1, got {share!r}")
        try:
            kept, held = train_test_split(
                np.arange(len(targets)),
                test_size=float(share),
                stratify=hard_targets(targets),
                random_state=int(rng.integers(2**31)),
            )
        except ValueError as error:
            other = "use Learned(data='training')"
            raise ValueError(
                f"validation_fraction={share} of {len(targets)} samples cannot be held out with every class on both "
                f"sides: {error}. Change it, or {'turn early_stopping off' if self.early_stopping else other}"
            ) from error
        return kept, held

    def _store(
        self,
        X: Any,
        trainer: Trainer,
        state: State,
        classes: Array,
        rng: np.random.Generator,
        history: dict[str, Array],
        met: Array | None = None,
        stream: Stream = Stream(),  # noqa: B008 - immutable
    ) -> Self:
        """Set all fitted attributes at once, after everything that can fail; X gives the number of features.

        ``met`` (M,) are the labels of the classes that have prototypes, where some of ``classes`` (C,) have none.
        """
        labels = (classes if met is None else met)[state.labels]
        prototypes = decoded(trainer.manifold, state, labels)
        if X is not None:
            validate_data(self, X, skip_check_array=True)
        fitted = {
            "_state": state,
            "_fitted_trainer": trainer,
            "_rng": rng,
            "_stream": stream,
            "classes_": classes,
            "prototypes_": prototypes,
            "prototype_labels_": labels,
            "sigma2_": state.sigma2,
            "n_epochs_": int(np.count_nonzero(history["epoch"])) if history else 0,
            "history_": history,
        }
        self.__dict__.update(fitted)  # in one go: Ctrl-C finds the old model or the new one
        return self


def _to_train(trainer: Trainer) -> Trainer:
    """Return the trainer for a stream: its first samples are too few to judge by, and its prototypes do move."""
    rule = named_sigma2(trainer.sigma2, auto="blended")
    return attrs.evolve(trainer, sigma2=attrs.evolve(rule, untrained=False) if isinstance(rule, HeldOut) else rule)
