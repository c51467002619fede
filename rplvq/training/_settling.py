"""The end of training before its last epoch, once the remaining steps can no longer change predictions measurably."""

import math
from typing import Any

import attrs
import numpy as np

from rplvq.protocols import Array, Manifold, Prototypes
from rplvq.training._state import Progress, State

NEGLIGIBLE = 0.01
"""Training ends if no prototype can be expected to move farther than this share of the distance between classes."""
EVERY = 10
"""Number of epochs between two looks, because each takes K^2 distances."""


@attrs.define(eq=False)
class Settling:
    """A hook that ends training when the prototypes have settled.

    Every tenth epoch it measures how far the prototypes moved in this epoch. The remaining steps are known to be
    smaller by the ratio of the step sizes, so that no prototype is expected to move farther than::

        (largest distance of this epoch) * (sum of the remaining step sizes) / (step size of this epoch)

    Training ends if this is at most 1 % of the smallest distance between two prototypes of different classes. It goes
    on as long as sigma2 still changes, or a metric is learned, because the step size is then not all that matters.

    Parameters
    ----------
    manifold : Manifold
        The geometry.
    n_epochs : int
        Number of epochs planned.
    last : Prototypes
        The prototypes after the previous epoch.
    """

    manifold: Manifold[Any]
    n_epochs: int
    last: Prototypes

    def __call__(self, progress: Progress) -> Progress:
        """Return the progress, which is stopped if the prototypes have settled."""
        before, state = self.last, progress.state
        self.last = state.prototypes
        if state.epoch % EVERY or state.epoch >= self.n_epochs or not only_steps_change(state, self.n_epochs):
            return progress
        ahead = sum(state.step_schedule(epoch, self.n_epochs) for epoch in range(state.epoch + 1, self.n_epochs + 1))
        moved, apart = self._moved(before, state.prototypes), self._apart(state.prototypes, state.labels)
        settled = moved * ahead / state.step_size <= NEGLIGIBLE * apart
        return progress._replace(stopped=progress.stopped or bool(settled))

    def _moved(self, before: Prototypes, after: Prototypes) -> float:
        """Return the largest distance between two versions of a prototype."""
        starts, ends = np.asarray(before), np.asarray(after)
        pairs = ((starts[k : k + 1], ends[k : k + 1]) for k in range(len(starts)))
        return math.sqrt(max(0.0, *(float(self.manifold.sqdist(*pair)[0, 0]) for pair in pairs)))

    def _apart(self, prototypes: Prototypes, labels: Array) -> float:
        """Return the smallest distance between prototypes of different classes; infinite if there is one class."""
        codes = np.asarray(prototypes)
        sqdist = self.manifold.sqdist(codes, codes)
        return math.sqrt(max(0.0, float(sqdist[labels[:, None] != labels].min(initial=np.inf))))


def only_steps_change(state: State, n_epochs: int) -> bool:
    """Whether from now on nothing but the step size changes: no sigma2, no adaptive step, and no learned metric."""
    if state.memory is not None or state.step_size == 0 or hasattr(state.prototypes, "with_codes"):
        return False
    return all(state.sigma2_schedule(epoch, n_epochs) == state.sigma2 for epoch in range(state.epoch + 1, n_epochs + 1))
