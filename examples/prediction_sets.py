"""Prediction sets with a guarantee

A brain-computer interface that is unsure can show two commands instead of one wrong command. Conformal prediction turns
the probabilities of any classifier into one set of classes per trial. It is calibrated on labelled trials. If new
trials are exchangeable with these, their sets hold the true class with the probability that you choose, here 80 %. The
package `crepes` (`pip install crepes`) does this. It needs one number per trial and class, here one minus the
probability of the class. The guarantee holds for any classifier; a better one has smaller sets.

The trials of a second day are not exchangeable with those of the first day, so the guarantee does not hold for them: on
average over nine subjects, 78 % of the sets held the true class. After `Recenter`, which needs no labels, about 81 %
did. If the true class becomes known after each trial, each trial can join the calibration.

Data: `bci2a_cov22.npz` holds 22 x 22 covariances of 576 trials of each of nine subjects. After `pip install moabb`,
`python -m examples.paper.bci2a_moabb data/bci2a_cov22.npz` in a clone of the repository makes it from the recordings
of <https://www.bbci.de/competition/iv/>. The environment variable RPLVQ_DATA names its folder, by default `data`.
"""

import os
from itertools import product
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from crepes import ConformalClassifier
from sklearn.model_selection import train_test_split

from rplvq import Recenter, RiemannianLVQ

path = Path(os.environ.get("RPLVQ_DATA", "data")) / "bci2a_cov22.npz"
if not path.is_file():
    raise SystemExit(f"There is no file {path}: the text at the top of this script says where the data come from.")
data, upper = np.load(path, allow_pickle=False), np.triu_indices(22)
confidence, subjects, repetitions = 0.8, range(1, 10), 10
ways = ("first day", "second day, as measured", "recentred", "recentred online", "recentred online, labels follow")
kinds = {"class means (MDM)": {"max_epochs": 0}, "default": {"random_state": 0}}  # with their settings


def sets_of(model, calibration, X, y, labels_follow=False):
    """Prediction sets (N, C) for the trials of a day in their order, as True where a class is in the set."""
    X_known, y_known = calibration
    known, new = (1 - model.predict_proba(matrices) for matrices in (X_known, X))  # nonconformity (N, C)
    conformal = ConformalClassifier().fit(known[np.arange(len(y_known)), y_known - 1], seed=0)  # labels are 1 to 4
    if labels_follow:  # the true class is known after each trial, and joins the calibration
        sets = conformal.predict_set_online(new, model.classes_, y, confidence=confidence, seed=0)
        # crepes 0.8 returns lists of classes
        return np.array([np.isin(model.classes_, one) for one in sets]) if isinstance(sets, list) else sets > 0
    return conformal.predict_set(new, confidence=confidence, seed=0) > 0


# %% Half of the first day trains; the other half is divided ten times into trials that calibrate and fresh ones
covered, sizes = np.zeros((2, len(kinds), len(subjects), len(ways)))
for row, subject in enumerate(subjects):
    X = np.empty((576, 22, 22))
    X[:, upper[0], upper[1]] = X[:, upper[1], upper[0]] = data[f"s{subject}_cov"]
    y, day = data[f"s{subject}_y"], data[f"s{subject}_test"]
    train, rest = train_test_split(np.flatnonzero(~day), test_size=0.5, stratify=y[~day], random_state=0)
    recenters = [Recenter(online=online).fit(X[train], groups=day[train]) for online in (True, False)]
    online, whole = (recenter.transform(X, groups=day) for recenter in recenters)
    models = [
        [RiemannianLVQ(**settings).fit(matrices[train], y[train]) for matrices in (X, whole)]
        for settings in kinds.values()
    ]
    for (kind, (plain, centred)), seed in product(enumerate(models), range(repetitions)):
        calibrate, fresh = train_test_split(rest, test_size=0.5, stratify=y[rest], random_state=seed)
        before, after = ((matrices[calibrate], y[calibrate]) for matrices in (X, whole))
        answers = [
            (sets_of(plain, before, X[fresh], y[fresh]), y[fresh]),
            (sets_of(plain, before, X[day], y[day]), y[day]),
            *((sets_of(centred, after, matrices[day], y[day]), y[day]) for matrices in (whole, online)),
            (sets_of(centred, after, online[day], y[day], labels_follow=True), y[day]),
        ]
        for column, (sets, truth) in enumerate(answers):
            covered[kind, row, column] += sets[np.arange(len(truth)), truth - 1].mean() / repetitions
            sizes[kind, row, column] += sets.sum(axis=1).mean() / repetitions
for (column, way), (kind, name) in product(enumerate(ways), enumerate(kinds)):
    held, size = covered[kind, :, column].mean(), sizes[kind, :, column].mean()
    print(f"{way:31s} {name:17s} true class in {held:.3f} of the sets, {size:.2f} classes")

# %% Coverage of each subject by the default, and the promise
figure, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
for column in range(len(ways)):
    ax.plot(covered[-1, :, column], np.full(len(subjects), -column), "o", color="#0072B2", alpha=0.6)
    ax.plot(covered[-1, :, column].mean(), -column, "|", ms=18, mew=2, color="black")
ax.axvline(confidence, color="#D55E00", label=f"promised: {confidence:.0%}")
ax.set_yticks(-np.arange(len(ways)), ways)
ax.set_ylim(0.6 - len(ways), 0.6)
ax.set_xlabel("share of sets with the true class (bar: mean of the subjects)")
ax.legend(frameon=False, loc="upper right")
plt.show()
