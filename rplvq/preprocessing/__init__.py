"""Moves matrices before they are classified; only :class:`SPDProjection` knows labels and prototypes."""

from typing import TYPE_CHECKING

from rplvq.parts import late_estimators
from rplvq.preprocessing._projection import SPDProjection
from rplvq.preprocessing._recenter import Recenter

if TYPE_CHECKING:
    from rplvq.preprocessing._streaming import StreamingPipeline

late_estimators("rplvq.preprocessing._streaming", "Pipeline", "StreamingPipeline")

__all__ = ["Recenter", "SPDProjection", "StreamingPipeline"]


def __getattr__(name: str) -> object:
    """Import StreamingPipeline only where it is used, because scikit-learn's pipelines take long to import."""
    if name == "StreamingPipeline":
        from rplvq.preprocessing._streaming import StreamingPipeline

        return StreamingPipeline
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
