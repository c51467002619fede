"""What sets itself

Two numbers decide how training goes: sigma2, how many prototypes a sample pulls on, and the step size. Here is what the
library offers in their place, on synthetic data of four classes: sigma2 by rule, chosen on held-out samples (`"auto"`,
the default, or `"heldout"`), or learned with the prototypes (`Learned`); a step size measured on the way
(`"adaptive"`), prototypes averaged over the epochs (`average=True`), and solvers that need no step size (such as
`"cg"`). This is one small split, where a point of accuracy is noise; tables over repetitions are on the
page [Beyond the paper](../beyond.md).
"""

import matplotlib.pyplot as plt
import numpy as np
from showing import show

from rplvq import Constant, GeometricDecay, Learned, RiemannianLVQ
from rplvq.datasets import make_syn1

# %% 10 x 10 matrices, as many to learn from as to test on
X, y = make_syn1(n_per_class=200, random_state=1)
rng = np.random.default_rng(1)
train, test = np.split(rng.permutation(len(y)), 2)


def learn(**settings):
    """Fit with these settings, all else by default."""
    return RiemannianLVQ(max_epochs=20, monitor="epoch", random_state=0, **settings).fit(X[train], y[train])


# %% sigma2: chosen, learned, or by rule
for name, model in {
    "class means": RiemannianLVQ(max_epochs=0).fit(X[train], y[train]),
    "blended": learn(sigma2="blended"),
    "half-median": learn(sigma2="half_median"),
    "auto": learn(),  # here "blended", with gentle steps
    "heldout": learn(sigma2="heldout"),
    "learned": learn(sigma2=Learned(), validation_fraction=0.2),
}.items():
    print(f"{name:11s} sigma2 {model.sigma2_:6.2f}, accuracy {model.score(X[test], y[test]):.3f}")

# %% Steps: the same sigma2 for all, from too small a step, a good one and too large a one
curves = {}
for factor in (0.1, 1.0, 4.0):
    start = 0.1 * factor  # the paper's is n times the prototypes a class over 100
    curves["paper's decay", factor] = learn(sigma2=8.0, step_size=GeometricDecay(start))
    curves["constant, averaged", factor] = learn(sigma2=8.0, step_size=Constant(start), average=True)
curves["adaptive", 1.0] = learn(sigma2=8.0, step_size="adaptive")
solved = {solver: learn(sigma2=8.0, solver=solver) for solver in ("steepest_descent", "cg")}
for (name, factor), model in curves.items():
    cost = model.history_["cost"]
    print(
        f"{name:18s} start x {factor:<4g} cost {cost[0]:6.1f} -> {cost[-1]:5.1f}, {model.score(X[test], y[test]):.3f}"
    )
for name, model in solved.items():
    cost = model.history_["cost"]
    print(f"{name:30s} cost {cost[0]:6.1f} -> {cost[-1]:5.1f}, {model.score(X[test], y[test]):.3f}")

figure, ax = plt.subplots(figsize=(9, 4.2), layout="constrained")
styles = {0.1: ":", 1.0: "-", 4.0: "--"}
colors = {"paper's decay": "#6B6B6B", "constant, averaged": "#D55E00", "adaptive": "#0072B2"}
for (name, factor), model in curves.items():
    label = name if name == "adaptive" else f"{name}, start x {factor:g}"
    ax.plot(model.history_["epoch"], model.history_["cost"], styles[factor], color=colors[name], label=label)
for (name, model), color in zip(solved.items(), ("#009E73", "#CC79A7"), strict=True):
    ax.plot(model.history_["epoch"], model.history_["cost"], color=color, label=name)
ax.set(xlabel="epochs, or iterations of a solver", ylabel="cost of the training data", yscale="log")
ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
ax.grid(color="0.9")
show(figure)
