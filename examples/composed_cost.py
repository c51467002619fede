"""Costs that add

Costs can be added and multiplied by positive numbers. `RSLVQ` separates classes, and may push prototypes out of their
data to do so. `Representability` pulls them back to the samples that they represent. How much of it is best? We compare
several sums on images of digits with the class means (MDM), with the margin cost `GLVQ`, and with `SpreadRSLVQ`, in
which each class has its own variance. On these data GLVQ stays at the level of the class means.
"""

import matplotlib.pyplot as plt
import numpy as np

from rplvq import GLVQ, RSLVQ, AffineInvariant, Representability, RiemannianLVQ
from rplvq.costs import RiemannianGaussian, SpreadRSLVQ
from rplvq.datasets import load_digits_covariances

# %% 5 x 5 matrices; the first 800 train
X, y = load_digits_covariances()
train, test = slice(0, 800), slice(800, None)
means = RiemannianLVQ(max_epochs=0).fit(X[train], y[train])
spread = SpreadRSLVQ.from_sqdist(
    means.transform(X[train]) ** 2, y[train], means.prototype_labels_, RiemannianGaussian(5)
)
print("variance of each class:", np.round(spread.variances, 3))


def learn(cost, decision="nearest", max_epochs=20):
    """Return the accuracy on new matrices, and the mean distance of the prototypes to their class means."""
    model = RiemannianLVQ(cost=cost, sigma2=0.05, decision=decision, max_epochs=max_epochs, random_state=0)
    model.fit(X[train], y[train])
    metric = AffineInvariant()
    sqdist = metric.sqdist(metric.encode(model.prototypes_), metric.encode(means.prototypes_))
    return model.score(X[test], y[test]), np.sqrt(np.diag(sqdist)).mean()


# %% Single costs
results = {
    "class means (MDM)": learn(RSLVQ(), max_epochs=0),
    "class means, spread": learn(spread, "posterior", max_epochs=0),
    "RSLVQ": learn(RSLVQ()),
    "GLVQ": learn(GLVQ()),
    "spread RSLVQ": learn(spread, "posterior"),
}
# %% Sums: with more representability, the prototypes stay closer to the class means
factors = [0.03, 0.1, 0.3, 1.0]
for factor in factors:
    results[f"RSLVQ + {factor:g} rep."] = learn(RSLVQ() + factor * Representability())
for name, (accuracy, away) in results.items():
    print(f"{name:21s} accuracy {accuracy:.3f}, prototypes {away:.2f} from the class means")

# %% One figure shows both numbers
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for axis, values, label in zip(
    axes, np.transpose(list(results.values())), ("accuracy on new data", "distance to the class means"), strict=True
):
    axis.barh(range(len(results)), values, color=["#0072B2" if "rep." in name else "#6B6B6B" for name in results])
    axis.bar_label(axis.containers[0], fmt="%.2f", padding=3)
    axis.set(xlabel=label)
    axis.spines[["top", "right"]].set_visible(False)
axes[0].set_yticks(range(len(results)), list(results))
axes[0].invert_yaxis()
axes[0].set_xlim(0, 1.1)
plt.show()
