"""Streaming: a classifier that follows a drift

Batches of 24 samples arrive one by one while the measured space slowly turns, as when electrodes shift.
`partial_fit` makes one sweep over each batch and then forgets it. Each batch is a test first: the frozen
classifier, trained on the first batch alone, falls far behind; the one that keeps learning loses less.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import expm
from showing import show

from rplvq import RiemannianLVQ
from rplvq.datasets import make_syn1

# %% A stream: SynI, turned by a growing rotation
rng = np.random.default_rng(0)
X, y = make_syn1(n_per_class=300, random_state=0)
generator = rng.normal(size=(10, 10))
generator -= generator.T
batches = []
for start in range(0, len(X), 24):
    turn = expm(generator * 0.35 * start / len(X))
    batches.append((turn @ X[start : start + 24] @ turn.T, y[start : start + 24]))

# %% Test on each batch, then learn from it
model = RiemannianLVQ(sigma2=8.0, step_size=0.2, max_epochs=1000, random_state=0)
frozen = RiemannianLVQ(sigma2=8.0, max_epochs=20, random_state=0).fit(*batches[0])
model.partial_fit(*batches[0], classes=np.unique(y))
scores = []
for X_batch, y_batch in batches[1:]:
    scores.append((frozen.score(X_batch, y_batch), model.score(X_batch, y_batch)))
    model.partial_fit(X_batch, y_batch)
scores = np.array(scores)
for name, column in zip(("frozen", "streaming"), scores.T, strict=True):
    first, last = column[:10].mean(), column[-10:].mean()
    print(f"{name:10s} accuracy on the first ten batches {first:.3f}, on the last ten {last:.3f}")

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
for name, column, color in zip(("frozen after batch 0", "partial_fit"), scores.T, ("#D55E00", "#0072B2"), strict=True):
    smooth = np.convolve(column, np.ones(5) / 5, mode="valid")
    ax.plot(np.arange(1, len(column) + 1), column, ".", color=color, alpha=0.35)
    ax.plot(np.arange(3, len(smooth) + 3), smooth, color=color, lw=2, label=name)
ax.set(xlabel="batch of 24 samples", ylabel="accuracy before learning from it", ylim=(0, 1.03))
ax.set_title("dots: batches; lines: means of five")
ax.legend(frameon=False, loc="lower left")
ax.grid(color="0.9")
show(figure)
