"""Makes or moves matrices before they are classified; only :class:`SPDProjection` knows labels and prototypes."""

from typing import TYPE_CHECKING, Any

from rplvq.preprocessing._bands import augmented_covariances, filter_bank_covariances
from rplvq.preprocessing._boxcar import boxcar
from rplvq.preprocessing._covariances import region_covariances, shrink, trial_covariances
from rplvq.preprocessing._pixels import grey5, rgb9
from rplvq.preprocessing._projection import SPDProjection
from rplvq.preprocessing._recenter import Recenter

if TYPE_CHECKING:
    from rplvq.preprocessing._streaming import StreamingPipeline

__all__ = [
    "Recenter", "SPDProjection", "StreamingPipeline", "augmented_covariances", "boxcar",
    "filter_bank_covariances", "grey5", "region_covariances", "rgb9", "shrink", "trial_covariances",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import StreamingPipeline only where it is used, because scikit-learn's pipelines take long to import."""
    if name == "StreamingPipeline":
        from rplvq.preprocessing._streaming import StreamingPipeline

        return StreamingPipeline
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
