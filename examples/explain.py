"""Explanations: which sources made the classifier say "left hand"

For each trial, `explain` shows which sources in the brain decided, with their patterns on the head. Each source has a
signed share of the margin by which the predicted class won. This margin is the squared distance to the nearest
prototype of another class, minus that to the nearest prototype of the predicted class.

Moving a hand weakens the rhythm over the opposite hand area. The trial in the figure is predicted as left hand, because
its rhythm at C4 is weak. Powers are in units of the prototype of the predicted class. Training exaggerates them.

Do shares mean something? Deleting the component with the largest of 22 shares, from the trial and both prototypes,
changes 54 % of the predictions; deleting a random one changes 8 %. Deleting channels in the order of their shares for
the true class lowers the accuracy faster than in the order of permutation importance, which is one for all trials.

Data: `bci2a_cov22.npz` holds 22 x 22 covariances of 576 trials of each of nine subjects. After `pip install moabb`,
`python -m examples.paper.bci2a_moabb data/bci2a_cov22.npz` in a clone of the repository makes it from the recordings
of <https://www.bbci.de/competition/iv/>. The environment variable RPLVQ_DATA names its folder, by default `data`.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from rplvq import RiemannianLVQ, explain
from rplvq.plotting import plot_explanation

path = Path(os.environ.get("RPLVQ_DATA", "data")) / "bci2a_cov22.npz"
if not path.is_file():
    raise SystemExit(f"There is no file {path}: the text at the top of this script says where the data come from.")
data, upper, rng = np.load(path, allow_pickle=False), np.triu_indices(22), np.random.default_rng(0)
names = ["Fz", "FC3", "FC1", "FCz", "FC2", "FC4", "C5", "C3", "C1", "Cz", "C2", "C4", "C6"]
names += ["CP3", "CP1", "CPz", "CP2", "CP4", "P1", "Pz", "P2", "POz"]
rows = {2: [0], 1: range(-2, 3), 0: range(-3, 4), -1: range(-2, 3), -2: range(-1, 2), -3: [0]}  # front to back
positions = [(x, y) for y, row in rows.items() for x in row]
movements, changed, accuracies = np.array(["", "left hand", "right hand", "feet", "tongue"]), {}, {}


def sqdist(X, W, filters):
    """Return affine-invariant squared distances (N,) in what filters (N, 22, p) let through."""
    X, W = (filters.swapaxes(1, 2) @ each @ filters for each in (X, W))
    whitener = np.linalg.inv(np.linalg.cholesky(W))
    return (np.log(np.linalg.eigvalsh(whitener @ X @ whitener.swapaxes(1, 2))) ** 2).sum(axis=1)


def without(filters, scores, k):
    """Return filters (N, 22, 22 - k) without the k of largest scores (N, 22)."""
    return np.take_along_axis(filters, np.argsort(-scores, axis=1)[:, None, k:], axis=2)


# %% Train on the first day; delete components, then channels, in every second trial of the second day
for subject in range(1, 10):
    X = np.empty((576, 22, 22))
    X[:, upper[0], upper[1]] = X[:, upper[1], upper[0]] = data[f"s{subject}_cov"]
    y, test = movements[data[f"s{subject}_y"]], data[f"s{subject}_test"]
    model = RiemannianLVQ(random_state=0).fit(X[~test], y[~test])
    X, y = X[test][::2], y[test][::2]
    explanations = explain(model, X)
    shares, filters, ratios = (np.array([getattr(e, k) for e in explanations]) for k in ("shares", "filters", "ratios"))
    own, other = (model.prototypes_[[getattr(e, k) for e in explanations]] for k in ("own", "other"))
    orders = {"largest shares": shares, "where the two prototypes differ most": np.abs(np.log(ratios))}
    for name, scores in (orders | {"random": rng.random((144, 22)), "smallest shares": -np.abs(shares)}).items():
        for k in (1, 2, 3, 4, 6, 8):
            kept = without(filters, scores, k)
            changed.setdefault((name, k), []).append(np.mean(sqdist(X, own, kept) > sqdist(X, other, kept)))
    importance = np.zeros(22)  # how much accuracy falls if a channel gets its power from other trials
    for channel in np.repeat(range(22), 5):
        factor = np.ones((144, 22))
        factor[:, channel] = np.sqrt(rng.permutation(X[:, channel, channel]) / X[:, channel, channel])
        importance[channel] -= model.score(X * factor[:, :, None] * factor[:, None], y)
    kinds = {"largest shares, true class": explain(model, X, target=y), "largest shares, predicted class": explanations}
    orders = {name: np.array([e.channels for e in explained]) for name, explained in kinds.items()}
    orders |= {"permutation importance": np.tile(importance, (144, 1)), "random": rng.random((144, 22))}
    for name, scores in orders.items():
        for k in (0, 1, 2, 3, 4, 6, 8):
            kept = without(np.tile(np.eye(22), (144, 1, 1)), scores, k)
            nearest = np.argmin([sqdist(X, prototype, kept) for prototype in model.prototypes_], axis=0)
            accuracies.setdefault((name, k), []).append(np.mean(model.prototype_labels_[nearest] == y))
    if subject == 3:
        called = [e for e in explanations if e.label == "left hand" and e.other_label == "right hand"]
for title, table in (("predictions that change", changed), ("accuracy", accuracies)):
    deleted = sorted({k for _, k in table})
    print(f"{title + ', k of 22 deleted: k =':40s}{''.join(f'{k:7d}' for k in deleted)}")
    for name in dict.fromkeys(name for name, _ in table):
        print(f"  {name:38s}{''.join(f'{np.mean(table[name, k]):7.3f}' for k in deleted)}")

# %% The median of these margins, on the head seen from above
plot_explanation(sorted(called, key=lambda e: e.margin)[len(called) // 2], positions=positions, names=names)
plt.show()
