"""sigma2 and the step size without tuning

Two numbers decide how training goes: sigma2, the variance of the mixture, and the step size. On images of digits
we compare what the library offers instead of tuning them by hand: rules for sigma2 (`"blended"`,
`"half_median"`), a choice by held-out samples (`"auto"`, the default, or `"heldout"`), and a step size that adapts
itself (`"adaptive"`). This is one small split, where a difference of one point of accuracy is noise. The page [Beyond
the paper](../beyond.md) has results over repetitions.
"""

import matplotlib.pyplot as plt

from rplvq import GeometricDecay, RiemannianLVQ
from rplvq.datasets import load_digits_covariances
from rplvq.training import EpochScore

# %% 5 x 5 matrices; the first 800 train
X, y = load_digits_covariances()
train, test = slice(0, 800), slice(800, None)


def learn(**settings):
    """Fit with these settings; everything else has its default."""
    model = RiemannianLVQ(max_epochs=20, callbacks=[EpochScore()], random_state=0, **settings)
    return model.fit(X[train], y[train])


# %% sigma2 by a rule, and chosen by held-out samples
for name, model in {
    "MDM": RiemannianLVQ(max_epochs=0).fit(X[train], y[train]),
    "blended": learn(sigma2="blended"),
    "half-median": learn(sigma2="half_median"),
    "auto": learn(),
    "heldout": learn(sigma2="heldout"),
}.items():
    print(f"{name:11s} sigma2 {model.sigma2_:6.2f}, accuracy {model.score(X[test], y[test]):.3f}")

# %% Step sizes with the same sigma2: the paper's decay from several starts, and the adaptive one
curves = {}
for factor in (0.1, 1.0, 4.0):
    start = 0.05 * factor  # the paper's start is 0.05 here: n times the prototypes per class over 100
    curves[f"paper's decay, start x {factor:g}"] = learn(sigma2=0.05, step_size=GeometricDecay(start))
curves["adaptive"] = learn(sigma2=0.05, step_size="adaptive")
for name, model in curves.items():
    cost, accuracy = model.history_["cost"], model.score(X[test], y[test])
    print(f"{name:26s} cost {cost[0]:5.1f} after one epoch, {cost[-1]:5.1f} after 20, accuracy {accuracy:.3f}")

figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
styles = [(":", "#6B6B6B"), ("-", "#6B6B6B"), ("--", "#6B6B6B"), ("-", "#0072B2")]
for (name, model), (style, color) in zip(curves.items(), styles, strict=True):
    ax.plot(model.history_["epoch"], model.history_["cost"], style, color=color, label=name)
ax.set(xlabel="epoch", ylabel="cost of the training data", yscale="log")
ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
ax.grid(color="0.9")
plt.show()
