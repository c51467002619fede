"""PolSAR: from a folder of PolSARpro to a map

Polarimetric radar gives one complex 3 x 3 coherency matrix per pixel. A scene in the format of PolSARpro is read,
averaged over 5 x 5 pixels against speckle, and classified pixel by pixel: `predict` takes an image of matrices and
returns an image of labels. Three classifiers learn from 400 pixels per kind of ground: the minimum Wishart distance
`log |W| + tr(W^-1 X)` to the arithmetic class means (Lee et al. 1994), which is the standard of the field, the minimum
Riemannian distance to mean (MDM), and trained prototypes.

If the environment variable RPLVQ_DATA names a folder with `polsar_sf_airsar_T3.npz`, the scene is San Francisco,
recorded by AIRSAR, with the labels of PolSF; the page "Data sets" of the documentation shows how to make the file.
(The list of PolSF names the labels in another order than its map shows them: the ocean is 3. The names here are those
of the places.) Otherwise it is simulated: fields of five kinds of ground, with the mean matrices of that scene, whose
power and orientation differ from field to field, and four looks per pixel.
"""

import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch
from scipy.ndimage import maximum_filter

from rplvq import RiemannianLVQ
from rplvq.datasets import read_polsar
from rplvq.features import boxcar

# Mean power in decibels, its deviation from field to field, that of the orientation in degrees, and the real parts of
# T11, T22, T33, T12, T13, T23 as shares of the power.
GROUND = {
    "bare soil": (-14.3, 3.2, 2, [0.48, 0.46, 0.06, 0.05, 0.01, 0.03]),
    "mountain": (-10.1, 4.0, 14, [0.63, 0.21, 0.16, -0.05, 0.06, 0.00]),
    "water": (-12.6, 5.1, 6, [0.86, 0.11, 0.03, -0.20, 0.04, 0.00]),
    "urban": (-5.6, 2.2, 6, [0.35, 0.49, 0.16, 0.01, 0.05, 0.12]),
    "vegetation": (-8.7, 1.9, 15, [0.44, 0.32, 0.24, -0.02, 0.03, 0.01]),
}
COLORS = ["#DDDDDD", "#E69F00", "#D55E00", "#56B4E9", "#CC79A7", "#009E73"]  # the first one is for pixels without label


def simulated(n_rows=450, n_columns=512, n_fields=250, n_looks=4):
    """Return nine planes by name, and labels; each pixel belongs to the field whose centre is nearest."""
    rng = np.random.default_rng(0)
    rows, columns = np.indices((n_rows, n_columns))
    centres = rng.random((n_fields, 2, 1, 1)) * [[[n_rows]], [[n_columns]]]
    field = np.argmin([(rows - r) ** 2 + (columns - c) ** 2 for r, c in centres], axis=0)
    kind, matrices = rng.integers(0, 5, n_fields), np.empty((n_fields, 3, 3))
    for matrix, ground in zip(matrices, np.array(list(GROUND))[kind], strict=True):
        power, spread, turn, (t11, t22, t33, t12, t13, t23) = GROUND[ground]
        angle = 2 * np.radians(turn * rng.normal())
        rotation = [[1, 0, 0], [0, np.cos(angle), np.sin(angle)], [0, -np.sin(angle), np.cos(angle)]]
        mean = rotation @ np.array([[t11, t12, t13], [t12, t22, t23], [t13, t23, t33]]) @ np.transpose(rotation)
        matrix[:] = 10 ** ((power + spread * rng.normal()) / 10) * mean
    normal = rng.normal(size=(2, n_rows, n_columns, 3, n_looks)) / np.sqrt(2 * n_looks)
    looks = np.linalg.cholesky(matrices)[field] @ (normal[0] + 1j * normal[1])
    scene = looks @ looks.conj().swapaxes(-1, -2)
    planes = {f"{i + 1}{i + 1}": scene[..., i, i].real for i in range(3)}
    for i, j in ((0, 1), (0, 2), (1, 2)):
        planes |= {f"{i + 1}{j + 1}_real": scene[..., i, j].real, f"{i + 1}{j + 1}_imag": scene[..., i, j].imag}
    return planes, 1 + kind[field]


def recorded(path):
    """Return nine planes by name, and labels, of which 0 is no label."""
    with np.load(path) as data:
        names = [name[1:].replace("_re", "_real").replace("_im", "_imag") for name in data["plane_names"].tolist()]
        return dict(zip(names, data["planes"], strict=True)), data["labels"].astype(int)


# %% A folder T3, as PolSARpro writes it. For a scene of your own, begin with read_polsar
path = Path(os.environ.get("RPLVQ_DATA", ""), "polsar_sf_airsar_T3.npz")
planes, labels = recorded(path) if path.is_file() else simulated()
n_rows, n_columns = labels.shape
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "config.txt").write_text(f"Nrow\n{n_rows}\n---------\nNcol\n{n_columns}\n")
    for name, plane in planes.items():
        plane.astype("<f4").tofile(Path(folder, f"T{name}.bin"))
    scene = boxcar(read_polsar(folder), 5)
print(f"{'recorded' if path.is_file() else 'simulated'} scene of {n_rows} x {n_columns} pixels")

# %% 400 pixels per kind train, in every second block; test pixels are at least 8 pixels away from these blocks
rng = np.random.default_rng(0)
blocks = (np.arange(n_rows)[:, None] // (n_rows // 6) + np.arange(n_columns) // (n_columns // 8)) % 2 == 0
train, test = np.zeros(labels.shape, dtype=bool), (labels > 0) & ~maximum_filter(blocks, 17)
for kind in range(1, 6):
    train.flat[rng.choice(np.flatnonzero(blocks & (labels == kind)), 400, replace=False)] = True

# %% The Wishart distance needs two lines of NumPy (Lee, Grunes, Kwok, Int. J. Remote Sensing 15, 1994)
means = np.array([scene[train & (labels == kind)].mean(axis=0) for kind in range(1, 6)])
distances = np.einsum("kij,rcji->rck", np.linalg.inv(means), scene).real + np.log(np.linalg.det(means).real)
maps = {"Wishart distance": 1 + distances.argmin(axis=-1)}
for name, model in {"MDM": RiemannianLVQ(max_epochs=0), "rplvq, default": RiemannianLVQ(random_state=0)}.items():
    maps[name] = model.fit(scene[train], labels[train]).predict(scene)  # (rows, columns, 3, 3) -> (rows, columns)
print(f"accuracy on {np.count_nonzero(test)} test pixels, and the mean over the kinds of ground")
scores = {}
for name, predicted in maps.items():
    right = [np.mean(predicted[test & (labels == kind)] == kind) for kind in range(1, 6)]
    scores[name] = np.mean(predicted[test] == labels[test])
    print(f"  {name:16s} {scores[name]:.3f}  {np.mean(right):.3f}")

# %% The Pauli picture (red: double bounce, green: volume, blue: surface), the labels, and the maps
figure, axes = plt.subplots(2, 2, figsize=(9.6, 9), layout="constrained")
powers = 10 * np.log10(np.diagonal(scene, axis1=-2, axis2=-1).real[..., [1, 2, 0]])
low, high = np.quantile(powers, [0.02, 0.98], axis=(0, 1))
axes[0, 0].imshow(np.clip((powers - low) / (high - low), 0, 1))
axes[0, 0].set_title("Pauli decomposition (decibels)")
shown = {"labels and blocks (the upper left one trains)": labels}
shown |= {f"{name}: accuracy {scores[name]:.3f}": maps[name] for name in ("Wishart distance", "rplvq, default")}
for ax, (title, image) in zip(axes.flat[1:], shown.items(), strict=True):
    ax.imshow(image, cmap=ListedColormap(COLORS), vmin=0, vmax=5, interpolation="nearest")
    ax.set_title(title)
axes[0, 1].contour(blocks, levels=[0.5], colors="black", linewidths=0.5)
for ax in axes.flat:
    ax.set_axis_off()
patches = [Patch(color=color, label=name) for name, color in zip(["no label", *GROUND], COLORS, strict=True)]
figure.legend(handles=patches[1 - (labels == 0).any() :], loc="outside lower center", ncols=6, frameon=False)
plt.show()
