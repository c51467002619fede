"""A schedule of your own

The step size and sigma2 may change from epoch to epoch. A schedule is a frozen class with one method, so that models
that hold it can be cloned, compared and saved. This example compares a warm-up that is followed by half a cosine with
the decay of the paper, on images of the digits 0 to 4. The class means (MDM), where training starts, are beside them.
"""

import math

import attrs
import matplotlib.pyplot as plt

from rplvq import GeometricDecay, RiemannianLVQ
from rplvq.datasets import load_digits_covariances
from rplvq.testing import check_schedule
from rplvq.training import EpochScore


# %% The schedule; epochs count from 1, and epoch 0 is the value before training
@attrs.frozen
class WarmCosine:
    """Rise from peak / 10 to peak in ``warm`` epochs, then fall to peak / 100 along half a cosine."""

    peak: float = 0.1
    warm: int = 3

    def __call__(self, epoch, n_epochs):
        if epoch < self.warm:
            return self.peak * (0.1 + 0.9 * epoch / self.warm)
        done = (epoch - self.warm) / max(n_epochs - self.warm, 1)
        return self.peak * (0.01 + 0.99 * (1 + math.cos(math.pi * done)) / 2)


check_schedule(WarmCosine())
print("check_schedule: positive, pure and picklable")

# %% The same problem with both schedules
X, y = load_digits_covariances()
X, y = X[y <= 4], y[y <= 4]
X_train, y_train, X_test, y_test = X[:450], y[:450], X[450:], y[450:]
means = RiemannianLVQ(max_epochs=0).fit(X_train, y_train)
print(f"MDM                  accuracy {means.score(X_test, y_test):.3f}")
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for name, schedule, color in [
    ("GeometricDecay(0.05)", GeometricDecay(0.05), "#0072B2"),
    ("WarmCosine(0.05)", WarmCosine(0.05), "#D55E00"),
]:
    model = RiemannianLVQ(sigma2=0.1, step_size=schedule, max_epochs=20, callbacks=[EpochScore()], random_state=0)
    history = model.fit(X_train, y_train).history_
    accuracy, cost = model.score(X_test, y_test), history["cost"]
    print(f"{name:20s} accuracy {accuracy:.3f}, cost {cost[0]:.0f} after one epoch, {cost[-1]:.0f} after 20")
    left.plot(history["epoch"], history["step_size"], "o-", ms=4, color=color, label=name)
    right.plot(history["epoch"], history["cost"], "o-", ms=4, color=color, label=name)
left.set(xlabel="epoch", ylabel="step size", title="schedules")
right.set(xlabel="epoch", ylabel="cost (sum over samples)", title="training")
for ax in (left, right):
    ax.legend(frameon=False)
    ax.grid(color="0.9")
plt.show()
