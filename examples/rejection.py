"""Rejection: leave doubtful cases to a human

A classifier may refuse to answer if its certainty is low. `RejectOption` finds the threshold for a given share of
answers by cross-validation. If fewer samples are answered, the accuracy of the answers rises. Another reason to refuse
is a large distance to every prototype. It helps little here: digits that were not in the training data are hardly
farther away than known ones, because all digits share their strokes.
"""

import matplotlib.pyplot as plt
import numpy as np

from rplvq import RejectOption, RiemannianLVQ
from rplvq.datasets import load_digits_covariances
from rplvq.inspection import accuracy_reject_curve
from rplvq.plotting import plot_accuracy_reject

X, y = load_digits_covariances()
known = y <= 4  # the digits 5 to 9 are never shown in training
X_train, y_train = X[:600][known[:600]], y[:600][known[:600]]
X_test, y_test = X[600:][known[600:]], y[600:][known[600:]]
model = RiemannianLVQ(prototypes_per_class=2, init="kmeans", random_state=0).fit(X_train, y_train)
means = RiemannianLVQ(max_epochs=0).fit(X_train, y_train)
print(f"all cases answered: accuracy {model.score(X_test, y_test):.3f}")
print(f"class means (MDM):  accuracy {means.score(X_test, y_test):.3f}")

# %% Doubt: the share of answers is set on training data, and holds on new data
for coverage in (1.0, 0.8, 0.5):
    option = RejectOption(model, coverage=coverage).fit(X_train, y_train)
    labels = option.predict(X_test)
    kept = labels != option.reject_label_
    accuracy = np.mean(labels[kept] == y_test[kept])
    print(f"coverage {coverage:4.0%}: answered {kept.mean():4.0%} of the cases, accuracy {accuracy:.3f}")
curves = {}
for criterion in ("posterior", "relative_distance"):
    option = RejectOption(model, threshold=0.0, criterion=criterion).fit(X_train, y_train)
    curves[criterion] = accuracy_reject_curve(y_test, model.predict(X_test), option.certainty(X_test))

# %% Novelty: how far away are digits that were not in the training data?
nearest = {"known digits": model.transform(X_test).min(axis=1), "unknown": model.transform(X[~known]).min(axis=1)}
limit = np.quantile(model.transform(X_train).min(axis=1), 0.95)
for name, distances in nearest.items():
    print(f"{name:13s} beyond the training data's 95 % distance: {np.mean(distances > limit):.3f}")

figure, (left, right_ax) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for (criterion, curve), color in zip(curves.items(), ("#0072B2", "#009E73"), strict=True):
    plot_accuracy_reject(curve, left, label=criterion.replace("_", " "), color=color)
left.set_title("rejection by doubt")
for (name, distances), color in zip(nearest.items(), ("#0072B2", "#D55E00"), strict=True):
    right_ax.hist(distances, bins=40, density=True, histtype="step", lw=2, color=color, label=name)
right_ax.axvline(limit, color="0.4", ls="--", lw=1.2, label="95 % of the training data")
right_ax.set(xlabel="distance to the nearest prototype", ylabel="density", title="rejection by distance")
right_ax.legend(frameon=False)
plt.show()
