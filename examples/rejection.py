"""Rejection: leave the doubtful cases to a human

A classifier that knows when it does not know may refuse. The class probabilities order the samples by doubt: refuse the
most doubtful share, and the accuracy of the rest rises. Distances are another reason to refuse, for samples that are
far from every prototype. Here they help little: digits that training never met are hardly further away, since digits
share their strokes and trained prototypes lie where classes differ, not where samples are dense.
"""

import matplotlib.pyplot as plt
import numpy as np
from showing import show

from rplvq import RiemannianLVQ
from rplvq.datasets import load_digits_covariances

X, y = load_digits_covariances()
known = y <= 4  # the digits 5 to 9 are never shown in training
X_train, y_train = X[:600][known[:600]], y[:600][known[:600]]
X_test, y_test = X[600:][known[600:]], y[600:][known[600:]]
model = RiemannianLVQ(prototypes_per_class=2, init="kmeans", max_epochs=15, random_state=0).fit(X_train, y_train)

# %% Doubt: accuracy of those that are kept, most certain first
certainty = model.predict_proba(X_test).max(axis=1)
order = np.argsort(-certainty)
right = (model.predict(X_test) == y_test)[order]
kept = np.arange(1, len(right) + 1)
accuracy = np.cumsum(right) / kept
for share in (1.0, 0.8, 0.5):
    print(f"answering {share:4.0%} of the cases: accuracy {accuracy[int(share * len(right)) - 1]:.3f}")

# %% Novelty: how far are digits that training never met?
nearest = {"known digits": model.transform(X_test).min(axis=1), "unknown": model.transform(X[~known]).min(axis=1)}
limit = np.quantile(model.transform(X_train).min(axis=1), 0.95)
for name, distances in nearest.items():
    print(f"{name:13s} beyond the training data's 95 % distance: {np.mean(distances > limit):.3f}")

figure, (left, right_ax) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(kept / len(right), accuracy, color="#0072B2", lw=2)
left.set(xlabel="share of cases answered", ylabel="accuracy of the answers", title="refusing by doubt")
left.grid(color="0.9")
for (name, distances), color in zip(nearest.items(), ("#0072B2", "#D55E00"), strict=True):
    right_ax.hist(distances, bins=40, density=True, histtype="step", lw=2, color=color, label=name)
right_ax.axvline(limit, color="0.4", ls="--", lw=1.2, label="95 % of the training data")
right_ax.set(xlabel="distance to the nearest prototype", ylabel="density", title="refusing by distance")
right_ax.legend(frameon=False)
show(figure)
