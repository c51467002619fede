"""A cost of your own

A cost turns squared distances into a loss and its derivative with respect to each of them. It never sees a matrix. This
example writes generalized LVQ (Sato and Yamada 1996), which compares the nearest prototype of the sample's own class
with the nearest prototype of the other classes. It does not use sigma2. `check_cost` compares the derivative with
finite differences.
"""

import attrs
import matplotlib.pyplot as plt
import numpy as np

from rplvq import GeometricDecay, RiemannianLVQ
from rplvq.datasets import load_digits_covariances
from rplvq.protocols import Evaluation
from rplvq.testing import check_cost
from rplvq.training import EpochScore


# %% The loss is (a - b) / (a + b), with a the squared distance to the own class and b the one to the others
@attrs.frozen
class GLVQ:
    """Relative difference of the two nearest squared distances, from -1 (right) to 1 (wrong)."""

    def __call__(self, sqdist, targets, labels, sigma2):
        if targets.ndim != 1:
            raise ValueError("GLVQ learns from one class per sample, not from soft labels")
        own = labels == targets[:, None]
        near, far = (np.where(mask, sqdist, np.inf) for mask in (own, ~own))
        a, b = near.min(axis=1), far.min(axis=1)
        total = np.maximum(a + b, np.finfo(float).tiny)
        slope = np.zeros_like(sqdist)
        rows = np.arange(len(sqdist))
        slope[rows, near.argmin(axis=1)] = 2 * b / total**2
        slope[rows, far.argmin(axis=1)] = -2 * a / total**2
        return Evaluation((a - b) / total, slope)


check_cost(GLVQ())
print("check_cost: the slope is the derivative of the loss")

# %% The same data, metric and epochs under two costs
X, y = load_digits_covariances()
X, y = X[y <= 4], y[y <= 4]
X_train, y_train, X_test, y_test = X[:450], y[:450], X[450:], y[450:]
settings = {"sigma2": "half_median", "callbacks": [EpochScore()], "random_state": 0}
means = RiemannianLVQ(max_epochs=0).fit(X_train, y_train)
print(f"MDM    test accuracy {means.score(X_test, y_test):.3f}")
models = {
    "RSLVQ": RiemannianLVQ(**settings),
    "GLVQ": RiemannianLVQ(cost=GLVQ(), step_size=GeometricDecay(0.02), **settings),
}
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, model), color in zip(models.items(), ("#0072B2", "#D55E00"), strict=True):
    history = model.fit(X_train, y_train).history_
    print(f"{name:6s} test accuracy {model.score(X_test, y_test):.3f}")
    ax.plot(history["epoch"], history["training_error"], "-", color=color, label=name)
ax.set(xlabel="epoch", ylabel="training error (share of samples)", title="digits 0 to 4: two costs, one metric")
ax.set_ylim(bottom=0)
ax.legend(frameon=False)
ax.grid(color="0.9")
plt.show()
