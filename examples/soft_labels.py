"""Soft labels: learning from mixtures

Some samples belong to two classes at once. Each matrix in this example lies on the geodesic from one class to the
other, and its soft label states how far along. PLVQ learns from such labels by cross-entropy. Rounding the labels to
the nearer class loses this information: the classifier still makes the same decisions, but its probabilities no longer
tell how mixed a sample is. The class means of the rounded labels (MDM) are beside them.
"""

import matplotlib.pyplot as plt
import numpy as np

from rplvq import AffineInvariant, RiemannianLVQ
from rplvq.datasets import make_syn1

# %% Mixtures: pairs of matrices of two classes, and one point on the geodesic between them
A, B = make_syn1(n_per_class=150, noise=0.1, shuffle=False, random_state=0)[0][:300].reshape(2, 150, 10, 10)
share = np.random.default_rng(0).uniform(size=150)
manifold = AffineInvariant()
X = np.empty_like(A)
for i in range(150):
    geodesic = manifold.connect(A[i : i + 1], B[i : i + 1])
    X[i] = manifold.decode(manifold.move(geodesic, share[i].reshape(1, 1)))[0]
soft = np.column_stack([1 - share, share])
train, test = slice(0, 100), slice(100, None)
print(f"label of the first sample: {soft[0].round(2)}, rounded: {soft[0].argmax()}")

# %% The same cost, with the soft labels and with rounded ones
settings = {"max_epochs": 20, "random_state": 0}
models = {
    "MDM": RiemannianLVQ(max_epochs=0).fit(X[train], soft[train].argmax(axis=1)),
    "soft labels": RiemannianLVQ(cost="plvq", **settings).fit(X[train], soft[train]),
    "rounded labels": RiemannianLVQ(cost="plvq", **settings).fit(X[train], soft[train].argmax(axis=1)),
}
figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
for (name, model), color in zip(models.items(), ("#999999", "#0072B2", "#D55E00"), strict=True):
    predicted = model.predict_proba(X[test])[:, 1]
    error = np.abs(predicted - share[test]).mean()
    agreement = np.mean((predicted > 0.5) == (share[test] > 0.5))
    print(f"{name:15s} side right: {agreement:.2f}, mean error of the share: {error:.3f}")
    ax.plot(share[test], predicted, "o", ms=5, color=color, alpha=0.7, label=name)
ax.plot([0, 1], [0, 1], color="0.6", lw=1, zorder=0)
ax.set(xlabel="true share of the second class", ylabel="predicted probability", title="unseen mixtures")
ax.legend(frameon=False)
plt.show()
