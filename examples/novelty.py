"""Novelty: samples that are far from everything that the model knows

Class probabilities compare the classes with one another. Far from all of them, the nearest class wins by a large
margin, and the probability is near 1. `RejectOption` therefore also looks at the distance to the nearest prototype,
relative to the distances of samples that were held out from training. Here it refuses artefacts in simulated EEG, and
digits that were never shown in training.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

from rplvq import RejectOption, RiemannianLVQ
from rplvq.datasets import load_digits_covariances
from rplvq.features import trial_covariances

# %% Simulated EEG: eight sources seen by eight electrodes; the classes differ in the power of two sources
rng = np.random.default_rng(0)
mixing = rng.normal(size=(8, 8))


def record(n_trials):
    """Return trials (N, 8, 250) and labels (N,)."""
    y = rng.integers(0, 2, n_trials)
    power = np.exp(0.3 * rng.normal(size=(n_trials, 8)))
    power[:, 0] *= np.where(y == 0, 1.0, 2.0)
    power[:, 1] *= np.where(y == 0, 2.0, 1.0)
    return mixing @ (np.sqrt(power)[:, :, None] * rng.normal(size=(n_trials, 8, 250))), y


trials, y = record(300)
test, y_test = record(200)
blink = np.exp(-(np.linspace(-5, 5, 250) ** 2)) * rng.uniform(20, 60, size=(200, 1, 1)) * np.abs(mixing[:, :1])
loose = np.where(np.arange(8)[:, None] == 3, 10.0, 1.0)  # one electrode with ten times the amplitude
kinds = {"clean": test, "blink": test + blink, "loose electrode": loose * test, "other unit": 1e-3 * test}

option = RejectOption(RiemannianLVQ(max_epochs=0), coverage=0.9).fit(trial_covariances(trials), y)
share = {}
for name, part in kinds.items():
    X = trial_covariances(part)
    reasons, sure = option.reasons(X), option.predict_proba(X).max(axis=1)
    share[name] = [np.mean(reasons == reason) for reason in ("between classes", "far from all")]
    refused = f"refused {share[name][0]:4.0%} between classes, {share[name][1]:4.0%} far from all"
    print(f"{name:16s} mean probability {sure.mean():.2f}, {refused}")

# %% A class left out of training: are the samples of the unknown digit further away than those of known ones?
X, y = load_digits_covariances()
rows = rng.permutation(len(y))
X, y = X[rows], y[rows]
for metric in ("affine_invariant", "log_euclidean", "tangent", "whitened_tangent", "euclidean"):
    areas = []
    for digit in (0, 1, 8):
        train, is_new = np.flatnonzero(y[:900] != digit), y[900:] == digit
        novelty = RejectOption(RiemannianLVQ(metric, max_epochs=0), coverage=0.9).fit(X[train], y[train])
        areas.append(roc_auc_score(~is_new, novelty.score_samples(X[900:])))
    print(f"{metric:16s} area under the ROC curve for the unknown digits 0, 1, 8: {np.round(areas, 2).tolist()}")

figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
between, far = np.transpose(list(share.values()))
ax.barh(list(share), between, color="#0072B2", label="between classes")
ax.barh(list(share), far, left=between, color="#D55E00", label="far from all")
ax.set(xlabel="share of refused trials", xlim=(0, 1), title="reasons of rejection")
ax.invert_yaxis()
ax.legend(frameon=False, loc="upper right")
plt.show()
