"""Run the paper's experiments, or rebuild the page from the recorded results.

python -m examples.paper run [--quick] [--only syn1 bci2a ...] [--jobs N]
python -m examples.paper compact [--quick]
python -m examples.paper report [--quick]
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Sequence

from examples.paper.command import Experiments

RESULTS = pathlib.Path(__file__).parent / "results"


def _report(folder: pathlib.Path) -> None:
    from examples.paper import pages  # only here: it draws figures

    pages.write(folder)


EXPERIMENTS = Experiments(
    "examples.paper",
    {
        "synthetic": (("syn1", "syn2"), ()),
        "synthetic_readings": (("syn2",), ()),
        "bci2a": (("bci2a",), ("bci2a_cov22.npz",)),
        "bci2a_readings": (("bci2a",), ("bci2a_cov22.npz",)),
        "eth80": (("eth80",), ("eth80_cov5.npz",)),
        "eth80_clusters": (("eth80",), ("eth80_cov5.npz",)),
        "cifar10": (("cifar10",), ("cifar10_cov9.npz",)),
        "leml": (("leml",), ("bci2a_cov22.npz", "eth80_cov5.npz")),
    },
    _report,
    RESULTS,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return EXPERIMENTS.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
