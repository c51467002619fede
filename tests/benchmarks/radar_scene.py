"""A whole radar scene, 900 x 1024 Hermitian 3 x 3 matrices against 12 prototypes on two cores.

    OMP_NUM_THREADS=1 PYTHONPATH=. python tests/benchmarks/radar_scene.py --out radar_scene.json

Measures predict on growing parts of the scene (median of runs in turn), fits the exponent of the time in the number of
pixels, and the peak memory of the process. ``--million`` adds a million real 3 x 3 matrices. ``--folder`` measures
only the map of a folder T3, read and written in blocks, beside the same work in memory; it needs rasterio.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from examples.paper.data import coherency_matrices, find
from rplvq import RiemannianLVQ
from rplvq.datasets import PolsarScene, classify_scene, read_polsar
from rplvq.features import boxcar
from tests.benchmarks.machine import machine

PARTS = (8, 4, 2, 1)


def peak_megabytes() -> float:
    """Largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def scene_and_labels() -> tuple[np.ndarray, np.ndarray]:
    """Matrices (921600, 3, 3) and labels (921600,)."""
    data = np.load(find("polsar_sf_airsar_T3.npz"), allow_pickle=False)
    scene = coherency_matrices(data["planes"], data["plane_names"])
    # rounded numbers make some pixels singular; a hundredth of a pixel's power on its diagonal is enough
    scene += 1e-2 / 3 * np.trace(scene, axis1=-2, axis2=-1).real[..., None, None] * np.eye(3)
    return scene.reshape(-1, 3, 3), data["labels"].ravel()


def seconds(model: RiemannianLVQ, matrices: np.ndarray) -> float:
    """Wall time of one prediction."""
    began = time.perf_counter()
    model.predict(matrices)
    return time.perf_counter() - began


def scaling(model: RiemannianLVQ, matrices: np.ndarray, repeats: int) -> dict[str, Any]:
    """Median time on parts of the matrices spread over the whole, and the fitted exponent."""
    parts = [np.ascontiguousarray(matrices[::step]) for step in PARTS]
    times = np.median([[seconds(model, part) for part in parts] for _ in range(repeats)], axis=0)
    sizes = [len(part) for part in parts]
    exponent = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    return {"matrices": sizes, "seconds": times.round(3).tolist(), "exponent": round(float(exponent), 3)}


def measure(repeats: int, million: bool) -> dict[str, Any]:
    """All figures."""
    scene, labels = scene_and_labels()
    rng = np.random.default_rng(0)
    train = np.concatenate([rng.choice(np.flatnonzero(labels == kind), 200, replace=False) for kind in range(1, 6)])
    counts = {1: 2, 2: 2, 3: 3, 4: 3, 5: 2}
    model = RiemannianLVQ(prototypes_per_class=counts, init="kmeans", max_epochs=3, n_jobs=2, random_state=0)
    model.fit(scene[train], labels[train])
    seconds(model, scene[:1000])
    before = peak_megabytes()
    result: dict[str, Any] = {
        "machine": machine("numpy", "rplvq"),
        "prototypes": 12,
        "whole_scene_seconds": seconds(model, scene),
    }
    result |= {"peak_megabytes": peak_megabytes(), "peak_before_predict_megabytes": before}
    result["scaling"] = scaling(model, scene, repeats)
    if million:
        matrices = np.resize(scene.real, (1_000_000, 3, 3))
        model.fit(scene[train].real, labels[train])
        result["million_seconds"] = seconds(model, matrices)
    return result


def of_folder(repeats: int) -> dict[str, Any]:
    """Seconds and memory of ``classify_scene``, and of reading, averaging and predicting the whole scene at once."""
    with np.load(find("polsar_sf_airsar_T3.npz"), allow_pickle=False) as data, tempfile.TemporaryDirectory() as name:
        folder, labels = Path(name, "T3"), data["labels"]
        folder.mkdir()
        (folder / "config.txt").write_text("Nrow\n{}\nNcol\n{}\n".format(*labels.shape))
        for plane, title in zip(data["planes"], data["plane_names"].tolist(), strict=True):
            plane.astype("<f4").tofile(folder / f"{title.replace('_re', '_real').replace('_im', '_imag')}.bin")
        scene = PolsarScene(folder, window=5)
        part = scene.read(0, 300)
        rows = np.random.default_rng(0).choice(np.flatnonzero(labels[:300] > 0), 2000, replace=False)
        model = RiemannianLVQ(prototypes_per_class=3, init="kmeans", max_epochs=3, n_jobs=2, random_state=0)
        model.fit(part.reshape(-1, 3, 3)[rows], labels[:300].ravel()[rows])
        runs = {
            "map": lambda: classify_scene(model, scene, folder / "map.tif"),
            "in_memory": lambda: model.predict(boxcar(read_polsar(folder), 5)),
        }
        before = peak_megabytes()
        runs["map"]()
        times: dict[str, list[float]] = {key: [] for key in runs}
        peaks = {}
        for _ in range(repeats):
            for key, run in runs.items():
                began = time.perf_counter()
                run()
                times[key].append(time.perf_counter() - began)
                peaks.setdefault(key, peak_megabytes())
    seconds = {key: round(min(values), 3) for key, values in times.items()}
    return {"prototypes": len(model.prototypes_), "seconds": seconds, "peak_megabytes": {"before": before} | peaks}


def main() -> None:
    """Print the figures, and write them where ``--out`` says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each size")
    parser.add_argument("--million", action="store_true", help="also a million real matrices")
    parser.add_argument("--folder", action="store_true", help="only the map of a folder T3")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    figures = of_folder(arguments.repeats) if arguments.folder else measure(arguments.repeats, arguments.million)
    text = json.dumps(figures, indent=2)
    print(text)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
