"""Streaming: a classifier that follows a drift

Batches of 24 samples arrive one after the other, while the measured space slowly rotates, as if electrodes shifted.
`partial_fit` makes one sweep over each batch, which is not needed afterwards. Each batch is a test before it is used
for training. The class means of the first batch (MDM) fall far behind, and the classifier that continues to learn keeps
up. In the second part, a class that was not announced appears half-way, and prototypes are added and removed where this
lowers the loss. All settings are defaults.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import expm

from rplvq import Grow, Prune, RiemannianLVQ
from rplvq.datasets import make_syn1

# %% A stream: SynI, rotated by a growing angle
rng = np.random.default_rng(0)
X, y = make_syn1(n_per_class=300, random_state=0)
generator = rng.normal(size=(10, 10))
generator -= generator.T
batches = []
for start in range(0, len(X), 24):
    turn = expm(generator * 0.35 * start / len(X))
    batches.append((turn @ X[start : start + 24] @ turn.T, y[start : start + 24]))

# %% Test on each batch, then learn from it
model = RiemannianLVQ(random_state=0)
means = RiemannianLVQ(max_epochs=0).fit(*batches[0])
model.partial_fit(*batches[0], classes=np.unique(y))
scores = []
for X_batch, y_batch in batches[1:]:
    scores.append([each.score(X_batch, y_batch) for each in (means, model)])
    model.partial_fit(X_batch, y_batch)
scores = np.array(scores)
for name, column in zip(("MDM", "streaming"), scores.T, strict=True):
    first, last = column[:10].mean(), column[-10:].mean()
    print(f"{name:10s} accuracy on the first ten batches {first:.3f}, on the last ten {last:.3f}")

# %% A class that appears late, with prototypes that are added and removed
late = RiemannianLVQ(growth=[Prune(), Grow(every=5)], random_state=0)
half, recall = len(batches) // 2, []
for i, (X_batch, y_batch) in enumerate(batches):
    is_new = y_batch == 3
    if i > half:
        recall.append(np.mean(late.predict(X_batch[is_new]) == 3))
    kept = ~is_new if i < half else np.full(len(y_batch), True)
    late.partial_fit(X_batch[kept], y_batch[kept])
print(f"classes {late.classes_.tolist()}, prototypes of {late.prototype_labels_.tolist()}")
first, last = np.mean(recall[:10]), np.mean(recall[-10:])
print(f"found of the late class: {first:.3f} in its first ten batches, {last:.3f} in the last ten")

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
for name, column, color in zip(("means of batch 0", "partial_fit"), scores.T, ("#D55E00", "#0072B2"), strict=True):
    smooth = np.convolve(column, np.ones(5) / 5, mode="valid")
    ax.plot(np.arange(1, len(column) + 1), column, ".", color=color, alpha=0.35)
    ax.plot(np.arange(3, len(smooth) + 3), smooth, color=color, lw=2, label=name)
ax.set(xlabel="batch of 24 samples", ylabel="accuracy before learning from it", ylim=(0, 1.03))
ax.set_title("dots: batches; lines: means of five")
ax.legend(frameon=False, loc="lower left")
ax.grid(color="0.9")
plt.show()
