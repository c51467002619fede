"""EEG sessions: recentring the second day

BCI Competition IV data set 2a has four imagined movements, 22 channels, and two sessions on different days. We train on
the first day and test on the second day. Electrodes never sit in the same place twice, so `Recenter` moves the mean of
each day to the identity, without using labels. If it uses all trials of the test day together, this is transductive. In
the online mode it uses past trials only, as a running brain-computer interface must. The kappa of the class means (MDM)
is beside that of each trained classifier.

Data: `bci2a_cov22.npz` holds 22 x 22 covariances of 576 trials of each of nine subjects. After `pip install moabb`,
`python -m examples.paper.bci2a_moabb data/bci2a_cov22.npz` in a clone of the repository makes it from the recordings
of <https://www.bbci.de/competition/iv/>. The environment variable RPLVQ_DATA names its folder, by default `data`.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import cohen_kappa_score

from rplvq import Recenter, RiemannianLVQ

path = Path(os.environ.get("RPLVQ_DATA", "data")) / "bci2a_cov22.npz"
if not path.is_file():
    raise SystemExit(f"There is no file {path}: the text at the top of this script says where the data come from.")
data = np.load(path, allow_pickle=False)
upper = np.triu_indices(22)


def kappa(model, X, y, test):
    """Train on the first day; return kappa of the second day."""
    return cohen_kappa_score(y[test], model.fit(X[~test], y[~test]).predict(X[test]))


# %% Kappa of the second day, for some of the nine subjects
subjects, views = [1, 3, 5, 8], ("as measured", "online", "recentred")
trained, means = np.empty((4, 3)), np.empty((4, 3))
for row, subject in enumerate(subjects):
    X = np.empty((576, 22, 22))
    X[:, upper[0], upper[1]] = X[:, upper[1], upper[0]] = data[f"s{subject}_cov"]
    y, test = data[f"s{subject}_y"], data[f"s{subject}_test"]
    recenters = [Recenter(online=online).fit(X[~test], groups=test[~test]) for online in (True, False)]
    for column, matrices in enumerate((X, *(recenter.transform(X, groups=test) for recenter in recenters))):
        means[row, column] = kappa(RiemannianLVQ(max_epochs=0), matrices, y, test)
        trained[row, column] = kappa(RiemannianLVQ(random_state=0), matrices, y, test)
    kappas = [f"{name} {trained[row, k]:.2f} (MDM {means[row, k]:.2f})" for k, name in enumerate(views)]
    print(f"subject {subject}: kappa {', '.join(kappas)}")
kappas = [f"{name} {trained[:, k].mean():.2f} (MDM {means[:, k].mean():.2f})" for k, name in enumerate(views)]
print(f"mean      : kappa {', '.join(kappas)}")

# %% Three bars per subject, and a dash for the class means
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
places = np.arange(len(subjects))
for k, (name, color) in enumerate(zip(views, ("#6B6B6B", "#E69F00", "#0072B2"), strict=True)):
    ax.bar(places + 0.27 * (k - 1), trained[:, k], width=0.25, color=color, label=name)
    ax.plot(places + 0.27 * (k - 1), means[:, k], "_", ms=16, color="black", label="class means" if k == 2 else None)
ax.set_xticks(places, [f"subject {subject}" for subject in subjects])
ax.set_ylim(0, 1)
ax.set_ylabel("Cohen's kappa on the second day")
ax.set_title("default settings, one prototype per class")
ax.legend(frameon=False, ncols=4, loc="upper center", fontsize="small")
plt.show()
