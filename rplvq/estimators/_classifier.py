"""RiemannianLVQ: the scikit-learn classifier over any manifold, cost, schedules and initializer."""

import warnings
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Literal, Self

import attrs
import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from rplvq.arrays import (
    Samples,
    by_block,
    check_labels,
    check_weights,
    encoded,
    matrix_size,
    number_groups,
    single_blas_thread,
    stacked,
    weigh_classes,
)
from rplvq.capabilities import Referenced, provides
from rplvq.costs import CostName
from rplvq.estimators._fitting import (
    ambient_of,
    begin_training,
    draw_seed,
    initializer_of,
    make_trainer,
    new_or_resumed,
    planned,
    referenced,
    store,
    untrained_of_all,
)
from rplvq.estimators._following import Stream, swept
from rplvq.estimators._names import (
    InitName,
    by_posterior,
    first_counts,
    manifold_of,
    resolve_early_stopping,
    takes_vectors,
)
from rplvq.estimators._online import begin_stream, gathered, known_classes, prepare_partial_fit, within
from rplvq.estimators._prediction import PrototypePredictor
from rplvq.exceptions import TrainingInterruptedWarning
from rplvq.io import answers_of_prototypes, require_fitted, require_valid, save_model
from rplvq.manifolds import MetricName
from rplvq.parts import PartsMixin, library_estimator
from rplvq.protocols import AnyManifold, Array, ArrayLike, Cost, Initializer, Schedule
from rplvq.schedules import AdaptiveStep, Share, StepSize
from rplvq.selection import HeldOut, split_classes
from rplvq.training import (
    Callback,
    Decision,
    EarlyStopping,
    Growth,
    Score,
    append_columns,
    columns,
    edge_trouble,
    estimate,
    history_row,
    if_possible,
    one_decision,
    step_trouble,
    untrained_history,
    warn_of,
    worse_trouble,
)


@library_estimator(require_fitted, {"callbacks": ()}, answers_of_prototypes)
class RiemannianLVQ(PrototypePredictor, PartsMixin):
    """Probabilistic learning vector quantization on a Riemannian manifold.

    Labelled prototypes W_k are moved by stochastic Riemannian gradient descent, so that the mixture
    ``p(k | X) = softmax(-d^2(X, W_k) / (2 sigma2))`` predicts the labels. With the default metric and cost this is
    PLRSQ (Tang, Feng, Tino, Si, Ji, "Probabilistic Learning Vector Quantization on Manifold of Symmetric
    Positive Definite Matrices"). With ``max_epochs=0`` it is the classifier of minimum distance to mean (MDM).

    Parameters
    ----------
    metric : str, Manifold or pymanopt manifold, default="affine_invariant"
        The geometry: "affine_invariant" ("airm", or pyRiemann's "riemann"), "log_euclidean" ("logeuclid"), "euclidean"
        ("euclid", the Frobenius distance with projection), "log_cholesky" ("logchol"), "bures_wasserstein"
        ("wasserstein"), "learned_log_euclidean", "tangent" (tangent vectors at the Riemannian mean of the training
        samples), "whitened_tangent" (the same, whitened by their covariance within classes), "euclidean_vectors" for
        plain vectors, or an object. Names may be written with hyphens and capitals.
    cost : str or Cost, default="rslvq"
        The loss: "rslvq", "plvq", "glvq" or an object.
    sigma2 : float, Schedule, HeldOut, "auto" or "half_median", default="auto"
        Variance of the mixture, in squared distances.

        - "auto" starts from a rule (:func:`rplvq.schedules.blended_sigma2`), and trains only if held-out samples show
          that training helps. They may also choose the prototypes of a discriminant analysis
          (:class:`rplvq.DiscriminantMeans`), without training. :class:`rplvq.HeldOut` describes the choice, and
          ``choice_`` shows it. ``partial_fit`` uses the rule without trials, because its first batch may be small.
        - "half_median" is half the median squared distance to the initial prototypes, the choice of the paper's
          authors. With it the fit always trains, as with a number or a schedule.
        - :class:`rplvq.HeldOut` tries a list of values. A schedule with ``start=None`` starts at the rule of "auto".
    step_size : float, Schedule, StepSize, AdaptiveStep, "auto", "paper" or "adaptive", default="auto"
        Step size, which is a squared distance like sigma2.

        - "auto" is :class:`rplvq.Share`: under the mixture costs ``min(a / T, 1) * 0.01^(t / T) * sigma2`` in epoch t
          of T. The amount of training a is 1, or 3 if held-out samples chose to train. Batches of B samples make the
          step B times as large.
        - "paper" is ``n xi / 100 * 0.01^(t / T)`` for n x n matrices and xi prototypes per class, in squared units of
          the data if distances carry units. Take it with a sigma2 of about that size or above.
        - "adaptive" (:class:`rplvq.AdaptiveStep`) adapts the step size during training.
        - :class:`rplvq.schedules.StepSize` also sets the cap on weights.
    prototypes_per_class : int, dict or "auto", default=1
        Number of prototypes per class, for all classes or by label. With "auto" held-out samples choose between one and
        two: ``fit`` takes two if their loss and their error are clearly lower than those of what it would choose
        otherwise. ``partial_fit`` begins with one then.
    class_weight : dict, "balanced" or None, default=None
        Weight of each class by label, 1 for a label that is missing. The weights of samples are multiplied by it.
        "balanced" gives all classes the same sum of weights; ``partial_fit`` does not support it.
    init : {"mean", "kmeans", "discriminant"}, Initializer or (prototypes, labels), default="mean"
        First prototypes: class means, k-means within each class, those of a discriminant analysis
        (:class:`rplvq.DiscriminantMeans`), an object, or K points with their labels.
    max_epochs : int, default=20
        Largest number of sweeps over the data; 0 keeps the initial prototypes. A fit with the default step size makes
        fewer, but at least 5, if they would visit more than 100,000 samples.
    batch_size : int or None, default=1
        Number of samples per step; None uses all samples (full batch). A step follows the mean over its samples. For
        batches of B samples, up to some dozens, multiply a ``step_size`` of your own by B to learn as much per epoch.
    decision : {"nearest", "posterior"}, default="nearest"
        Whether to predict the class of the nearest prototype, as the paper does, or the most probable class. They can
        differ if a class has several prototypes.
    early_stopping : bool or EarlyStopping, default=False
        Whether to hold out samples, to stop when their cost no longer falls, and to keep the best prototypes.
    growth : sequence of callable, default=()
        Rules that add and remove prototypes, such as :class:`rplvq.Grow` and :class:`rplvq.Prune`, between the epochs
        of fit and between the calls of partial_fit, in this order.
    callbacks : sequence of callable, default=()
        Each is called with an :class:`rplvq.training.EpochReport` after each epoch. Returning True stops training, and
        a mapping of numbers is added to the row of the history.
    n_jobs : int or None, default=None
        Number of threads for distances and large batches, which changes no result; -1 uses all cores.
    verbose : int, default=0
        1 shows a progress bar, and one line on standard error that says what held-out samples chose.
    random_state : int, RandomState or None, default=None
        Seed of the initial prototypes and of the sweeps. With one, a fit does not depend on the order of samples.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Labels, sorted; 0..C-1 for soft labels. Labels announced to partial_fit are here before their samples.
    prototypes_, prototype_labels_ : ndarray of shape (K, n, n), and (K,)
        Prototypes as points, and their labels.
    sigma2_ : float
        Value that probabilities use: that at the end of training, recalibrated on the held-out samples of the choice.
    step_size_ : float
        Step size with which training begins, or would begin if the fit trained.
    choice_ : rplvq.selection.Choice
        What held-out samples chose, and by which losses; print it to see a table.
    n_epochs_ : int
        Number of epochs trained, and of calls of ``partial_fit`` since then; 0 if the fit did not train.
    missing_channels_ : rplvq.manifolds.MissingChannels or None
        What ``fit`` remembers to fill missing channels; None if the points are no positive definite matrices.
    history_ : dict of str to ndarray
        One entry per epoch, or one for epoch 0 if there was none (with more than 256 prototypes an estimate from evenly
        spaced samples): epoch, cost, training_error, sigma2, step_size, n_capped, seconds, n_prototypes, and with early
        stopping validation_cost and validation_error. ``partial_fit`` adds one entry per call, and keeps the last 1000.
    n_features_in_ : int
        n for matrices, d for vectors.
    trainer_ : rplvq.Trainer
        The trainer with the resolved parts.
    state_ : rplvq.training.State
        The state at the end of training: prototypes as the manifold represents them, class indices, schedules.

    Notes
    -----
    The methods that predict raise NotFittedError before fit, and ValueError at the first sample that is not on the
    manifold or if the samples have another size than the prototypes. They take

    X : array-like of shape (N, n, n), or (N, d) for vectors
        Samples. An array of shape (rows, columns, n, n) is an image with one matrix per pixel. For it, the results have
        the shape (rows, columns, ...) in place of (N, ...), and an error names the row and the column. If channels of a
        positive definite matrix are missing, their rows and columns are NaN, and are filled before the prediction by
        what ``fit`` remembers in ``missing_channels_`` (:class:`rplvq.manifolds.MissingChannels`).

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
    >>> model.predict(X.reshape(8, 10, 10, 10)).shape  # an image of 8 x 10 pixels
    (8, 10)
    """

    def __init__(
        self,
        metric: MetricName | str | AnyManifold = "affine_invariant",
        cost: CostName | Cost = "rslvq",
        *,
        sigma2: float | Schedule | HeldOut | Literal["auto", "half_median"] = "auto",
        step_size: float | Schedule | Share | StepSize | AdaptiveStep | Literal["auto", "paper", "adaptive"] = "auto",
        prototypes_per_class: int | Mapping[object, int] | Literal["auto"] = 1,
        class_weight: Mapping[object, float] | Literal["balanced"] | None = None,
        init: InitName | Initializer | tuple[ArrayLike, ArrayLike] = "mean",
        max_epochs: int = 20,
        batch_size: int | None = 1,
        decision: Literal["nearest", "posterior"] = "nearest",
        early_stopping: bool | EarlyStopping = False,
        growth: Sequence[Growth] = (),
        callbacks: Sequence[Callback] = (),
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.metric = metric
        self.cost = cost
        self.sigma2 = sigma2
        self.step_size = step_size
        self.prototypes_per_class = prototypes_per_class
        self.class_weight = class_weight
        self.init = init
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.decision = decision
        self.early_stopping = early_stopping
        self.growth = growth
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    # As the splitters of scikit-learn that take groups, fit requests them by default.
    __metadata_request__fit = {"groups": True}  # noqa: RUF012

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        resume: str | PathLike[str] | None = None,
    ) -> Self:
        """Learn prototypes.

        Ctrl-C during training keeps what was learned: the model is that of the last whole epoch, and a warning says so.
        It is that of the best epoch with early stopping, and has the initial prototypes if no epoch is whole. Ctrl-C
        before training leaves the model as it was. A fit that may be killed should write a :class:`rplvq.Checkpoint`.

        Parameters
        ----------
        X : array-like of shape (N, n, n), or (N, d) for vectors
            Samples: symmetric or Hermitian positive definite matrices.
        y : array-like of shape (N,) or (N, C)
            Labels of any sortable type, or class probabilities whose rows sum to one.
        sample_weight : array-like of shape (N,), optional
            Weight w counts as w copies of the sample: an epoch visits it ceil(w) times, with steps scaled by
            ``w / ceil(w)``. The model depends on the distinct samples and the sums of their weights only, so that a
            sample of weight 2 is the same as two equal samples, and one of weight 0 the same as none. There are two
            exceptions. If all sums are below 1, as AdaBoost passes them, or if their mean is above 100, they are scaled
            to the mean 1, so that no epoch is very long.
        groups : array-like of shape (N,), optional
            Group of each sample, such as its session, run, object or image region. The trials of ``sigma2="auto"`` and
            :class:`rplvq.HeldOut`, and early stopping, then hold out whole groups, so that the choice and the
            probabilities are those for samples of new groups. Where no group can be held out, because there is one only
            or a class would keep too few samples, random samples are held out, with a warning. Equal samples of one
            class belong to the first of their groups. If nothing is held out, groups change nothing.
        resume : path-like, optional
            File of a :class:`rplvq.Checkpoint` of a fit with the same data, parameters and seed. Training continues
            from there, to the same prototypes as if it had never ended, bit for bit on the same machine and libraries.
            ``resume=path if os.path.exists(path) else None`` suits a script that is started again and again.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If an argument or parameter is invalid, or the checkpoint damaged or of another fit; nothing is changed.
        FloatingPointError
            If training diverges, by a ``max_weight`` above its default, or a prototype leaves a manifold of your own.
        OSError
            If the checkpoint cannot be read.

        Warns
        -----
        TrainingInterruptedWarning
            After Ctrl-C; the model is complete by then.
        UserWarning
            If samples were to be held out by groups, and no group can be held out.
        DivergenceWarning
            If a prototype is at the edge of the manifold, or over 10 % of the weights of an epoch were cut; with help.

        Examples
        --------
        The samples are eight views of each of 16 objects, and trials hold out all views of an object together:

        >>> from rplvq import RiemannianLVQ
        >>> from rplvq.datasets import make_syn1
        >>> X, y = make_syn1(n_per_class=32, random_state=0)
        >>> object_of = np.arange(len(y)) // 8
        >>> model = RiemannianLVQ(random_state=0).fit(X, y, groups=object_of)
        >>> model.choice_.trains
        False
        """
        with single_blas_thread(matrix_size(X)):
            manifold = manifold_of(self)
            classes, samples = self._check(ambient_of(manifold), X, y, sample_weight, groups=groups, in_stream=False)
            progress, origin = new_or_resumed(self, resume, classes, samples)
            rng = np.random.default_rng(origin.seed)
            validation = None
            stopping = resolve_early_stopping(self.early_stopping)
            if stopping is not None and self.max_epochs != 0:
                samples, validation = self._hold_out(samples, classes, stopping.fraction, rng)
            initializer = initializer_of(self, first_counts(self, classes), classes, samples.targets, samples.weights)
            manifold, samples = referenced(manifold, samples)
            if validation is not None and provides(manifold, Referenced):
                validation = attrs.evolve(validation, codes=by_block(manifold.encode, validation.codes))
            trainer = planned(self, make_trainer(self, manifold, initializer), samples.n_visits)
            if resume is not None and progress is not None:
                require_valid(resume, progress, manifold, len(classes), trainer.max_epochs)
            with one_decision(Decision(samples.n_visits * trainer.max_epochs, trainer.verbose)):
                if progress is None:
                    first = trainer.first_prototypes(samples, len(classes), rng)
                    trainer, progress = begin_training(
                        self, trainer, *first, samples, len(classes), rng, validation=validation
                    )
                    if validation is not None and progress.stopped:
                        samples = samples.followed_by(validation).canonical()
                        progress = untrained_of_all(trainer, progress, samples, len(classes), rng)
                        validation = None
                first_state = progress.state
                interrupted = False
                try:
                    for latest in trainer.epochs(progress, samples, rng, validation, origin):
                        progress = latest
                except KeyboardInterrupt:  # keep the result of the epoch before
                    rng.bit_generator.state = progress.rng
                    interrupted = True
            state, history = progress.result()
            if not history:
                parts = [samples] if validation is None else [samples, validation]
                # With max_epochs=0 the cost is not needed, and may be one that refuses these labels.
                cost = trainer.cost if trainer.max_epochs else if_possible(trainer.cost)
                history = untrained_history(state, *(estimate(manifold, cost, state, part) for part in parts))
            stream = Stream(fitted=samples.total_weight)
            store(self, X, trainer, state, classes, rng, history, None, stream, progress.choice, samples)
            troubles = [edge_trouble(manifold, state.prototypes, self.prototype_labels_)]
            if state.epoch and resume is None and not (progress.choice and progress.choice.compared_initial):
                troubles.append(worse_trouble(manifold, first_state, state, samples))
        if interrupted:
            after = f"training was interrupted after {progress.state.epoch} of {trainer.max_epochs} epochs"
            text = f"{after}: the model is that of the last whole epoch. partial_fit trains it on"
            warnings.warn(text, TrainingInterruptedWarning, stacklevel=2)
        warn_of([*troubles, step_trouble(history, samples.n_visits, state.step_schedule)], 2)
        return self

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Continue from the present prototypes with one sweep over a batch of samples.

        Each call trains. Only ``fit`` holds samples out and keeps the class means where training does not help. Begin
        with ``fit`` if you can, and pass each batch once.

        The first call chooses the initial prototypes, sigma2 (if it is not given) and the reference of a metric such as
        "tangent" from its batch. Later calls keep its parameters, except ``growth``. Schedules that are given advance
        by one epoch per call up to ``max_epochs``, where they stay. If the stream did not begin with fit,
        ``sigma2="auto"`` follows the latest 300 samples. A class that does not come for long keeps its prototypes.

        The default step finds changes by itself. The step of K prototypes after n samples, with those of fit, is the
        share K / n of sigma2. A copy of the prototypes learns with the share 0.1. It answers while its loss on the
        latest 300 samples, before it learned from them, is lower and its errors are no more. Once the loss is lower by
        two standard errors, there was a change, and n begins anew. Until then the prototypes of fit answer while their
        loss is lower or their errors are fewer; the step in ``history_`` is then 0.

        Rules of ``growth`` see the latest samples, including those of this call, before the sweep. Callbacks are not
        called. Ctrl-C leaves the model as it was before the call.

        The first call may hold one class only if ``classes`` names the others. Until a second class comes, calls only
        gather samples, at most 1000, every sample is predicted to be of the first class, and sigma2, unless given, is
        half the median squared distance to its prototypes. The call that brings a second class begins with all of them.

        A class that appears late gets prototypes by ``init`` (at its mean, if ``init`` is prototypes) from its samples
        in the call. It gets as many as ``prototypes_per_class``, or as it has samples; one sample is enough. Until 10
        samples per prototype have come, its prototypes are initialized anew from all of them in each call. The class is
        predicted from its first sample on; before, it has probability 0.

        Parameters
        ----------
        X, y : array-like
            Samples and labels, as for fit.
        classes : array-like of shape (C,), optional
            All labels that will come. If the first call is given none, new labels are accepted in any call; after fit
            they are not. A later call may name more than are known, never fewer.
        sample_weight : array-like of shape (N,), optional
            As for fit, but weights below 1 are not scaled, and a mean above 100 is scaled to 100, because weights are
            compared with those of other calls.

        Returns
        -------
        self

        Raises
        ------
        ValueError, FloatingPointError
            As for fit. Also if a label is not among the classes that were named, or has another type; if the first
            batch holds one class only and ``classes`` is not given; if labels are soft while a class has no sample.

        Warns
        -----
        DivergenceWarning
            If more than a tenth of the weights of the call (one per sample and prototype) were cut.

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

        A class that was not announced:

        >>> X, y = np.array([[0.0], [1.0], [4.0], [5.0]]), ["low", "low", "high", "high"]
        >>> model = RiemannianLVQ("euclidean_vectors", sigma2=1.0).partial_fit(X, y)
        >>> model.partial_fit([[9.0]], ["higher"]).predict([[0.0], [8.0]])
        array(['low', 'higher'], dtype='<U6')
        """
        with single_blas_thread(matrix_size(X)):
            first = not hasattr(self, "state_")
            stream = Stream(classes is None, seen=0.0) if first else self.__dict__.get("_stream", Stream())
            known = known_classes(classes, None if first else self.classes_)
            begins = first or stream.alone is not None
            manifold = manifold_of(self) if begins else self.trainer_.manifold
            checked_by = ambient_of(manifold) if begins else manifold
            known, samples = self._check(checked_by, X, y, sample_weight, known, more=stream.is_open and not first)
            if not first:
                validate_data(self, stacked(X), skip_check_array=True, reset=False)
                self._require_same_shape(samples.codes)
            choice = None
            if begins:
                samples = samples if stream.alone is None else gathered(stream.alone, samples, known)
                rng = np.random.default_rng(draw_seed(self))
                met, trainer, state, stream, choice = begin_stream(self, manifold, known, samples, stream, rng)
            else:
                rng = np.random.default_rng(0)  # a copy, so that the model does not change if the call fails
                rng.bit_generator.state = self._rng.bit_generator.state
                met, trainer, state, stream = prepare_partial_fit(self, known, samples, stream, rng)
            if stream.alone is None:
                state, row, stream = swept(trainer, state, within(samples, met), stream, known[met], rng)
            else:
                row = history_row(state, Score(0.0, 0.0), 0, 0.0)
            history = append_columns({} if first else self.history_, row)
            store(self, X if first else None, trainer, state, known, rng, history, known[met], stream, choice)
        warn_of([step_trouble(columns([row]), samples.n_visits, state.step_schedule)], 2)
        return self

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a file ``path``; the errors are those of :func:`rplvq.save_model`."""
        save_model(self._snapshot(), path)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = takes_vectors(self)
        tags.input_tags.three_d_array = not takes_vectors(self)
        return tags

    def _check(
        self, manifold: AnyManifold, X: ArrayLike, y: ArrayLike, weights: ArrayLike | None,
        classes: Array | None = None, *, groups: ArrayLike | None = None, more: bool = False, in_stream: bool = True,
    ) -> tuple[Array, Samples]:  # fmt: skip
        """Return classes, with others than the known ones if ``more``, and checked samples in canonical order."""
        by_posterior(self.decision)
        codes = encoded(manifold, X)
        names, targets = check_labels(y, len(codes), classes, more=more)
        given = check_weights(weights, len(codes))
        is_open = in_stream and (more or classes is None)
        weighed = weigh_classes(self.class_weight, names, targets, given, in_stream=in_stream, is_open=is_open)
        samples = Samples(codes, targets, weighed, number_groups(groups, len(codes)))
        return names, samples.canonical(shares=not in_stream)

    def _hold_out(
        self, samples: Samples, classes: Array, fraction: float, rng: np.random.Generator
    ) -> tuple[Samples, Samples]:
        """Return the samples that train and the samples held out for early stopping, some of every class."""
        counts = first_counts(self, classes)
        kept, held = split_classes(samples, np.repeat(np.arange(len(counts)), counts), rng, fraction)
        if (lost := np.setdiff1d(samples.classes, samples.classes[held])).size:
            n_own = np.count_nonzero(samples.classes == lost[0])
            few = f"class {classes.tolist()[lost[0]]!r} has {n_own} distinct sample(s) and needs {counts[lost[0]] + 2}"
            raise ValueError(f"early_stopping: {few}, so that one can be held out. Turn early_stopping off")
        return samples.subset(kept), samples.subset(held)
