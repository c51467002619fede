"""Measure what goes beyond the paper, or rebuild the page from the recorded results.

python -m examples.beyond run [--quick] [--only recentering ...] [--jobs N]
python -m examples.beyond compact
python -m examples.beyond report
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Sequence

from examples.paper.command import Experiments

RESULTS = pathlib.Path(__file__).parent / "results"
BCI, ETH = "bci2a_cov22.npz", "eth80_cov5.npz"


def _report(folder: pathlib.Path) -> None:
    from examples.beyond import report  # only here: a report needs results

    report.write(folder)


EXPERIMENTS = Experiments(
    "examples.beyond",
    {
        "default": (("default",), ()),
        "compositions": (("compositions",), ()),
        "groups": (("groups",), ()),
        "alternatives": (("alternatives",), ()),
        "discriminant": (("discriminant",), ()),
        "home": (("home",), ()),
        "steps": (("steps",), ()),
        "batches": (("batches",), ()),
        "votes": (("votes",), (ETH,)),
        "more": (("more",), ()),
        "own_sigma2": (("sigma2",), ()),
        "reference": (("reference",), ()),
        "costs": (("costs",), ()),
        "geometries": (("geometries",), ()),
        "products": (("products",), ()),
        "reduction": (("reduction",), (BCI,)),
        "soft_labels": (("soft",), ()),
        "recentering": (("recentering",), (BCI,)),
        "stream": (("stream",), (BCI,)),
        "transfer": (("transfer",), (BCI,)),
        "rejection": (("rejection", "calibration"), (BCI, ETH)),
    },
    _report,
    RESULTS,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return EXPERIMENTS.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
