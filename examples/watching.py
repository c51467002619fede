"""Watching a model: sessions that drift

A model at work meets no labels, but it can say when its data have changed. `RejectOption` learns from held-out samples
how many it will reject, and how far from the prototypes 95 % of the samples lie. `watch` compares each window of a
stream with these two promises. Here a model of imagined movements learns on the first day, and on the second day the
electrodes sit elsewhere. `Recenter` follows the second day by past trials and without labels, and brings it back to
where the promises hold. The share of novel trials is the sharper of the two signs: rejection also asks how certain the
class is, and a trial that is a little too far from a prototype can be certain of its class.

The prototypes are class means, `max_epochs=0`. Trained prototypes may lie far from all samples, and their distances
then tell less of a drift.

If the environment variable RPLVQ_DATA names a folder with `bci2a_cov22.npz`, the trials are those of three subjects of
BCI Competition IV 2a; the page "Data sets" of the documentation shows how to make the file. Otherwise they are
simulated: the channels of the second day have other gains, which go on drifting.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from rplvq import Recenter, RejectOption, RiemannianLVQ
from rplvq.datasets import make_syn1
from rplvq.inspection import watch

WINDOW = 36


def simulated():
    """Yield one subject: matrices (576, 8, 8), labels, and whether they are of the second day."""
    rng = np.random.default_rng(0)
    X, y = make_syn1(n_per_class=144, n=8, random_state=0)
    order = rng.permutation(len(X))
    drift = np.exp(np.linspace(0.3, 0.4, 288)[:, None] * rng.normal(size=8))
    second = X[order[288:]] * drift[:, :, None] * drift[:, None, :]
    yield np.concatenate([X[order[:288]], second]), y[order], np.arange(576) >= 288


def recorded(path):
    """Yield three subjects: matrices (576, 22, 22), labels, and whether they are of the second day."""
    upper = np.triu_indices(22)
    with np.load(path) as data:
        for subject in (1, 3, 8):
            X = np.empty((576, 22, 22))
            X[:, upper[0], upper[1]] = X[:, upper[1], upper[0]] = data[f"s{subject}_cov"]
            yield X, data[f"s{subject}_y"], data[f"s{subject}_test"]


# %% Train on the first day, and watch the second one: as measured, and re-centred by past trials
path = Path(os.environ.get("RPLVQ_DATA", ""), "bci2a_cov22.npz")
subjects = list(recorded(path) if path.is_file() else simulated())
seen = {"as measured": [], "re-centred": []}
for X, y, second in subjects:
    day = np.where(second, "second", "first")
    recenter = Recenter(online=True).fit(X[~second], groups=day[~second])
    for name, matrices in {"as measured": X, "re-centred": recenter.transform(X, groups=day)}.items():
        option = RejectOption(RiemannianLVQ(max_epochs=0), coverage=0.9).fit(matrices[~second], y[~second])
        seen[name].append(watch(option, matrices[second], window=WINDOW))

# %% Shares per window, beside the promised ones and the deviation that chance explains
print(f"{len(subjects)} {'recorded' if path.is_file() else 'simulated'} subject(s), windows of {WINDOW} trials")
for name, parts in seen.items():
    for what in ("rejected", "novel"):
        shares = np.mean([getattr(part, what) for part in parts], axis=0)
        promised = getattr(parts[0], f"promised_{what}")
        chance = np.sqrt(promised * (1 - promised) / (WINDOW * len(parts)))
        print(f"{name:12s} {what:9s} promised {promised:.2f} +- {chance:.2f}, second day:", *shares.round(2))

# %% Two lines per plot
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for ax, (name, parts) in zip(axes, seen.items(), strict=True):
    for what, color in (("rejected", "#0072B2"), ("novel", "#D55E00")):
        ax.plot(parts[0].ends, np.mean([getattr(part, what) for part in parts], axis=0), "o-", color=color, label=what)
        ax.axhline(getattr(parts[0], f"promised_{what}"), color=color, ls="--", lw=1)
    ax.set(title=name, xlabel="trials of the second day", ylim=(0, 1))
axes[0].set_ylabel("share of the window")
axes[0].legend(frameon=False, title="dashed: promised by held-out trials")
plt.show()
