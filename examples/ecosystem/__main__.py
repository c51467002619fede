"""Run rplvq inside other libraries, or rebuild the page from the recorded results.

python -m examples.ecosystem run [--quick] [--only moabb vowels motions] [--jobs N]
python -m examples.ecosystem compact
python -m examples.ecosystem report
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Sequence

from examples.ecosystem import report
from examples.paper.command import Experiments

RESULTS = pathlib.Path(__file__).parent / "results"
EXPERIMENTS = Experiments(
    "examples.ecosystem", {"eeg": (("moabb",), ()), "series": (("vowels", "motions"), ())}, report.write, RESULTS
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return EXPERIMENTS.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
