"""Dimension reduction: 22 electrodes, few components

Covariance matrices of 22 channels have many entries for 288 trials. `SPDProjection` looks for the subspace of channel
combinations in which the classes differ most, measured by the cost with which the prototypes are trained, and returns p
x p matrices. How small may p be? We train on the first day of BCI Competition IV data set 2a and test on the second
day. Each day is recentred. Four components keep most of what 22 channels tell; the rest takes many more components. The
kappa of the class means (MDM) of the same matrices is beside that of the trained classifier, which gains from four
components on. With two components it loses: the matrices tell too little to train on.

Data: `bci2a_cov22.npz` holds 22 x 22 covariances of 576 trials of each of nine subjects. After `pip install moabb`,
`python -m examples.paper.bci2a_moabb data/bci2a_cov22.npz` in a clone of the repository makes it from the recordings
of <https://www.bbci.de/competition/iv/>. The environment variable RPLVQ_DATA names its folder, by default `data`.
"""

import os
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import cohen_kappa_score
from sklearn.pipeline import make_pipeline

from rplvq import Recenter, RiemannianLVQ, SPDProjection
from rplvq.presets import plrsq_const

path = Path(os.environ.get("RPLVQ_DATA", "data")) / "bci2a_cov22.npz"
if not path.is_file():
    raise SystemExit(f"There is no file {path}: the text at the top of this script says where the data come from.")
data = np.load(path, allow_pickle=False)
upper = np.triu_indices(22)


def days(subject):
    """Return the covariances of a subject (recentred by day), their labels, and which are of the second day."""
    X = np.empty((576, 22, 22))
    X[:, upper[0], upper[1]] = X[:, upper[1], upper[0]] = data[f"s{subject}_cov"]
    test = data[f"s{subject}_test"]
    return Recenter().fit_transform(X, groups=test), data[f"s{subject}_y"], test


def kappa_and_seconds(steps, X, y, test):
    """Train a pipeline on the first day; return kappa on the second day and the seconds that both took."""
    began = time.perf_counter()
    pipeline = make_pipeline(*steps).fit(X[~test], y[~test])
    kappa = cohen_kappa_score(y[test], pipeline.predict(X[test]))
    return kappa, time.perf_counter() - began


# %% Three subjects, four sizes and the full one
subjects, sizes = [1, 3, 9], [2, 4, 8, 12, 22]
classifier = plrsq_const(sigma2=3.0, max_epochs=20, random_state=0)
kappas, means, seconds = np.empty((3, len(subjects), len(sizes)))
for row, subject in enumerate(subjects):
    X, y, test = days(subject)
    for column, p in enumerate(sizes):
        steps = [] if p == 22 else [SPDProjection(p, max_iter=15)]
        kappas[row, column], seconds[row, column] = kappa_and_seconds([*steps, classifier], X, y, test)
        means[row, column], _ = kappa_and_seconds([*steps, RiemannianLVQ(max_epochs=0)], X, y, test)
for p, kappa, mean, second in zip(sizes, kappas.mean(axis=0), means.mean(axis=0), seconds.mean(axis=0), strict=True):
    print(f"{p:2d} components: kappa {kappa:.2f}, class means (MDM) {mean:.2f}, {second:.1f} s")

# %% Which channels the four components weigh, for the last subject
projection = SPDProjection(4, max_iter=15).fit(X[~test], y[~test])
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for subject, line, color in zip(subjects, kappas, ("#0072B2", "#D55E00", "#009E73"), strict=True):
    left.plot(sizes, line, "o-", color=color, label=f"subject {subject}")
left.set_xscale("log", base=2)
left.set_xticks(sizes, [str(p) for p in sizes])
left.set(ylim=(0, 1), xlabel="components", ylabel="Cohen's kappa on the second day", title="what each size keeps")
left.legend(frameon=False, loc="lower right")
size = np.abs(projection.components_).max()
image = right.imshow(projection.components_.T, cmap="PuOr", vmin=-size, vmax=size, aspect="auto")
right.set(xlabel="channel", ylabel="component", title=f"V for subject {subjects[-1]}")
right.set_yticks(range(4), ["1", "2", "3", "4"])
figure.colorbar(image, ax=right)
plt.show()
