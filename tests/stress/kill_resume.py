"""Kill a fit with SIGKILL at random moments, go on from its checkpoint, and compare with the fit that nobody killed.

    python tests/stress/kill_resume.py          # 50 kills
    python tests/stress/kill_resume.py 200 --every 5

A kill is recovered if the checkpoint is whole, if no more epochs are lost than lie between two checkpoints, and if
the fit that goes on from it ends at the same prototypes, bit for bit.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

import numpy as np

from rplvq import AffineInvariant, Checkpoint, EarlyStopping, RiemannianLVQ
from rplvq.datasets import make_syn1
from rplvq.io import load_checkpoint

N_EPOCHS = 40


class Kill(NamedTuple):
    """What became of one killed fit: epochs that it told of, epochs in its checkpoint, and whether all is well."""

    told: int
    saved: int
    recovered: bool


def tell(report: Any) -> None:
    """Print the epoch that is over, after the checkpoint was written."""
    sys.stdout.write(f"{report.state.epoch}\n")
    sys.stdout.flush()


def data() -> tuple[Any, Any]:
    return make_syn1(n_per_class=10, random_state=0)


def model(compiled: bool | str, callbacks: Any = ()) -> RiemannianLVQ:
    return RiemannianLVQ(
        AffineInvariant(compiled=compiled), sigma2=2.0, max_epochs=N_EPOCHS, random_state=0,
        early_stopping=EarlyStopping(patience=N_EPOCHS), prototypes_per_class=2, callbacks=callbacks,
    )  # fmt: skip


def train(path: str, every: int, compiled: bool | str) -> None:
    """What the killed process does."""
    model(compiled, [Checkpoint(path, every=every), tell]).fit(*data())


def kill_one(path: pathlib.Path, every: int, compiled: bool | str, rng: np.random.Generator, whole: Any) -> Kill:
    """Start a fit, kill it at a random moment, and go on from its checkpoint."""
    command = [sys.executable, __file__, "--child", str(path), "--every", str(every), "--compiled", str(compiled)]
    path.unlink(missing_ok=True)
    last = int(rng.integers(1, N_EPOCHS - 1))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stdout is not None
        told = 0
        for line in process.stdout:
            told = int(line)
            if told == last:
                time.sleep(rng.uniform(0, 0.01))  # somewhere in an epoch or in the writing of a checkpoint
                process.send_signal(signal.SIGKILL)
        if process.wait() != -signal.SIGKILL:
            raise RuntimeError(f"the fit ended by itself, with status {process.returncode}")
    saved = load_checkpoint(path).progress.state.epoch
    again = model(compiled).fit(*data(), resume=path)
    same = np.array_equal(again.prototypes_, whole.prototypes_) and all(
        np.array_equal(again.history_[name], whole.history_[name]) for name in whole.history_ if name != "seconds"
    )
    return Kill(told, saved, same and told - saved < every)


def environment() -> dict[str, str]:
    root = pathlib.Path(__file__).resolve().parents[2]
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}


def kill_many(count: int, every: int, compiled: bool | str, seed: int) -> list[Kill]:
    rng, whole = np.random.default_rng(seed), model(compiled).fit(*data())
    with tempfile.TemporaryDirectory() as folder:
        return [kill_one(pathlib.Path(folder, f"{index}.npz"), every, compiled, rng, whole) for index in range(count)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kills", nargs="?", type=int, default=50)
    parser.add_argument("--every", type=int, default=3, help="epochs between checkpoints")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compiled", choices=["auto", "True", "False"], default="auto")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    compiled = {"auto": "auto", "True": True, "False": False}[arguments.compiled]
    if arguments.child:
        train(arguments.child, arguments.every, compiled)
        return 0
    kills = kill_many(arguments.kills, arguments.every, compiled, arguments.seed)
    for kill in kills:
        sys.stdout.write(f"killed after epoch {kill.told}, checkpoint of epoch {kill.saved}: {kill.recovered}\n")
    recovered = sum(kill.recovered for kill in kills)
    sys.stdout.write(
        f"{recovered} of {len(kills)} recovered; at most {max(k.told - k.saved for k in kills)} epochs lost\n"
    )
    return recovered < len(kills)


if __name__ == "__main__":
    raise SystemExit(main())
