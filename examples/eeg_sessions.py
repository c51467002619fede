"""EEG sessions: recentring the second day

BCI Competition IV data set 2a has four imagined movements, 22 channels, and two sessions on different days. We train on
the first day and test on the second day. Electrodes never sit in the same place twice, so `Recenter` moves the mean of
each day to the identity, without using labels. If it uses all trials of the test day together, this is transductive. In
the online mode it uses past trials only, as a running brain-computer interface must.
"""

import matplotlib.pyplot as plt
import numpy as np
from showing import real_data, show
from sklearn.metrics import cohen_kappa_score

from rplvq import Recenter
from rplvq.presets import plrsq_const

data = np.load(real_data("bci2a_cov22.npz"), allow_pickle=False)
upper = np.triu_indices(22)

# %% Kappa of the second day, for some of the nine subjects; few epochs keep it quick
subjects, kappas = [1, 3, 5, 8], []
for subject in subjects:
    X = np.empty((576, 22, 22))
    X[:, upper[0], upper[1]] = X[:, upper[1], upper[0]] = data[f"s{subject}_cov"]
    y, test = data[f"s{subject}_y"], data[f"s{subject}_test"]
    found = []
    recenters = [Recenter(online=online).fit(X[~test], groups=test[~test]) for online in (True, False)]
    for matrices in (X, *(recenter.transform(X, groups=test) for recenter in recenters)):
        model = plrsq_const(sigma2=4.0, max_epochs=5, random_state=0).fit(matrices[~test], y[~test])
        found.append(cohen_kappa_score(y[test], model.predict(matrices[test])))
    kappas.append(found)
    print(f"subject {subject}: kappa {found[0]:.2f} as measured, {found[1]:.2f} online, {found[2]:.2f} recentred")
means = np.mean(kappas, axis=0)
print(f"mean      : kappa {means[0]:.2f} as measured, {means[1]:.2f} online, {means[2]:.2f} recentred")

# %% Three bars per subject
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
places = np.arange(len(subjects))
for shift, column, name, color in zip(
    (-0.27, 0, 0.27),
    np.transpose(kappas),
    ("as measured", "online, past trials", "recentred by day"),
    ("#6B6B6B", "#E69F00", "#0072B2"),
    strict=True,
):
    ax.bar(places + shift, column, width=0.25, color=color, label=name)
ax.set_xticks(places, [f"subject {subject}" for subject in subjects])
ax.set_ylim(0, 1)
ax.set_ylabel("Cohen's kappa on the second day")
ax.set_title("5 epochs, sigma2 = 4, one prototype per class")
ax.legend(frameon=False, ncols=3, loc="upper center")
show(figure)
