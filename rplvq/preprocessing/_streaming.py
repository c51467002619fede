"""StreamingPipeline: scikit-learn's Pipeline with a ``partial_fit``."""

from copy import deepcopy
from typing import Self

from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, process_routing
from sklearn.utils.metaestimators import available_if

from rplvq.parts import library_estimator
from rplvq.protocols import ArrayLike

_saved = library_estimator(left_out={"memory": None})
_saved(Pipeline)


@_saved
class StreamingPipeline(Pipeline):
    """scikit-learn's ``Pipeline`` with :meth:`partial_fit`, for example of :class:`Recenter` and a classifier.

    After ``fit`` on one session, the pipeline follows the next one: it predicts each batch, and then learns from it.

    Parameters
    ----------
    steps : list of tuple
        Names and estimators, as for ``Pipeline``. ``make_pipeline(...).steps`` is such a list with automatic names.
    transform_input, memory, verbose
        As for ``Pipeline``; partial_fit does not use them.

    Notes
    -----
    ``groups`` reach :class:`Recenter`, which needs ``online=True`` here, by scikit-learn's metadata routing, which must
    be enabled for predict and for partial_fit. A new session needs a new name. ``fit`` on a single session needs no
    groups.

    Without labels, ``pipeline[:-1].partial_fit(X, groups=session)`` follows a session. ``pipeline[:-1]`` shares its
    steps with the pipeline, so that the transformers learn and the classifier stays as it is.

    Examples
    --------
    One session calibrates. In the next one, another gain moves all samples, and each batch is predicted before the
    pipeline learns from it:

    >>> import sklearn
    >>> from rplvq import Recenter, RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> from rplvq.preprocessing import StreamingPipeline
    >>> X, y = make_syn1(n_per_class=20, random_state=0)
    >>> X[1::2] *= 4.0  # the gain of the second session
    >>> recenter, lvq = Recenter(online=True, prior_weight=1), RiemannianLVQ(max_epochs=5, random_state=0)
    >>> pipeline = StreamingPipeline([("recenter", recenter), ("lvq", lvq)]).fit(X[::2], y[::2])
    >>> right = 0
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     for start in range(1, 80, 10):
    ...         X_new, y_new = X[start : start + 10 : 2], y[start : start + 10 : 2]
    ...         right += int((pipeline.predict(X_new, groups=["tuesday"] * 5) == y_new).sum())
    ...         pipeline = pipeline.partial_fit(X_new, y_new, groups=["tuesday"] * 5)
    >>> right  # of 40; without Recenter, but with the same calls of partial_fit, 16 are right
    34
    """

    # partial_fit passes classes to the last step itself, so that the step need not request them.
    __metadata_request__partial_fit = {"classes": UNUSED}  # noqa: RUF012

    @available_if(  # type: ignore[untyped-decorator]
        lambda self: bool(self.steps) and hasattr(self.steps[-1][1], "partial_fit")
    )
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike | None = None, classes: ArrayLike | None = None, **params: object
    ) -> Self:
        """Learn from a batch of samples, which each step receives as the steps before it transform it; return self.

        A transformer first transforms the batch and then learns from it, so that no sample takes part in its own
        transformation. Transformers without ``partial_fit``, such as :class:`SPDProjection`, stay as fit left them.
        Before a first fit, all transformers are fitted to the batch, and the last step begins with it. If ValueError is
        raised because a step refuses the batch, no step is changed.

        Parameters
        ----------
        X, y : array-like of shape (N, ...), and (N,)
            Samples, as the first step takes them, and labels, as the last step takes them.
        classes : array-like of shape (C,), optional
            All labels that will come, for the last step.
        **params
            With metadata routing, what the steps request for ``partial_fit``, and transformers also for ``transform``
            and ``fit``. :class:`Recenter` requests ``groups`` by default, and a classifier requests weights if you call
            its ``set_partial_fit_request(sample_weight=True)``. Without metadata routing, parameters of the last step
            only, such as ``lvq__sample_weight`` for a step named "lvq".
        """
        routed = self._route(params)
        begins = not self.__sklearn_is_fitted__()
        learned = []
        for name, step in self.steps[:-1]:
            if step is None or step == "passthrough":
                continue
            # A copy learns, so that the step itself stays as it is if a later one refuses the batch.
            copy = deepcopy(step) if begins or hasattr(step, "partial_fit") else step
            metadata = routed[name]
            before = X
            if begins and hasattr(step, "fit_transform"):
                X = copy.fit_transform(before, y, **metadata.fit_transform)
            elif begins:
                X = copy.fit(before, y, **metadata.fit).transform(before, **metadata.transform)
            else:
                X = step.transform(before, **metadata.transform)
                if copy is not step:
                    copy.partial_fit(before, y, **metadata.partial_fit)
            learned.append((step, copy))
        name, last = self.steps[-1]
        announced = {} if classes is None else {"classes": classes}
        last.partial_fit(X, y, **announced, **routed[name].partial_fit)
        for step, copy in learned:  # no step refused the batch
            vars(step).update(vars(copy))
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the router of ``Pipeline``, with the methods that partial_fit calls."""
        router = super().get_metadata_routing()
        for name, (mapping, _) in router:
            mapping.add(caller="partial_fit", callee="partial_fit")
            if name != self.steps[-1][0]:
                mapping.add(caller="partial_fit", callee="transform")
                fits = "fit_transform" if hasattr(self[name], "fit_transform") else "fit"
                mapping.add(caller="partial_fit", callee=fits)
        return router

    def _route(self, params: dict[str, object]) -> Bunch | dict[str, Bunch]:
        """Return for each step the parameters of its methods."""
        if get_config()["enable_metadata_routing"]:
            return process_routing(self, "partial_fit", **params)
        last = self.steps[-1][0]
        routed = {name: Bunch(fit={}, fit_transform={}, transform={}, partial_fit={}) for name, _ in self.steps}
        for key, value in params.items():
            if not key.startswith(f"{last}__"):
                what = f"it takes parameters of the last step only, such as '{last}__sample_weight'"
                remedy = "Call sklearn.set_config(enable_metadata_routing=True) first"
                raise ValueError(f"partial_fit got {key!r}: without metadata routing, {what}. {remedy}")
            routed[last].partial_fit[key.removeprefix(f"{last}__")] = value
        return routed
