"""sigma2 and the step size without tuning

Two numbers decide how training goes: sigma2, the variance of the mixture, and the step size. By default a rule sets
both, and held-out samples decide whether to train at all. This example prints what they chose (`choice_`), and compares
the default with other settings on images of digits: the sigma2 of the paper's authors (`"half_median"`), also with the
paper's step size (`"paper"`), and a step size that adapts itself (`"adaptive"`). This is one small split, where a
difference of one point of accuracy is noise. The page [Beyond the paper](../beyond.md) has results over repetitions.
"""

import warnings

import matplotlib.pyplot as plt

from rplvq import HeldOut, RiemannianLVQ
from rplvq.datasets import load_digits_covariances
from rplvq.exceptions import DivergenceWarning
from rplvq.training import EpochScore

# %% 5 x 5 matrices; the first 800 train
X, y = load_digits_covariances()
train, test = slice(0, 800), slice(800, None)


def learn(**settings):
    """Fit with these settings; everything else has its default."""
    model = RiemannianLVQ(max_epochs=20, callbacks=[EpochScore()], random_state=0, **settings)
    return model.fit(X[train], y[train])


# %% What the default found, and by which losses on held-out samples
default = learn()
print(default.choice_)

# %% Other choices; the one with the paper's steps gets worse than it began, and says so
warnings.simplefilter("ignore", DivergenceWarning)
curves = {
    "default": default,
    "always trained": learn(sigma2=HeldOut(["auto"])),
    'sigma2="half_median"': learn(sigma2="half_median"),
    'the same, step_size="paper"': learn(sigma2="half_median", step_size="paper"),
    'step_size="adaptive"': learn(sigma2=HeldOut(["auto"]), step_size="adaptive"),
}
print(f"{'MDM':28s} accuracy {RiemannianLVQ(max_epochs=0).fit(X[train], y[train]).score(X[test], y[test]):.3f}")
for name, model in curves.items():
    print(f"{name:28s} accuracy {model.score(X[test], y[test]):.3f}, sigma2 {model.sigma2_:.3f}")

figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
styles = [("-", "#D55E00"), (":", "#6B6B6B"), ("--", "#6B6B6B"), ("-.", "#6B6B6B"), ("-", "#0072B2")]
for (name, model), (style, color) in zip(curves.items(), styles, strict=True):
    ax.plot(model.history_["epoch"], model.history_["training_error"], style, color=color, label=name)
ax.set(xlabel="epoch", ylabel="training error")
ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
ax.grid(color="0.9")
plt.show()
