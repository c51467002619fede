"""How much does sigma2 matter?

sigma2 is the variance of the mixture, in squared distances. With a small value, a sample moves only the nearest
prototypes; with a large value, it moves all of them. The best value differs between data sets. On the digits, training
improves on the class means (the broken line), most of all for small values. On SynII it ends below them for every
value, because these classes were generated around their means. Held-out data should therefore decide on sigma2, and on
whether to train at all.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.model_selection import StratifiedKFold, cross_val_score, validation_curve

from rplvq import RiemannianLVQ
from rplvq.datasets import load_digits_covariances, make_syn2
from rplvq.exceptions import DivergenceWarning

warnings.simplefilter("ignore", DivergenceWarning)  # the largest values make training worse, which is the point here

digits = tuple(part[:600] for part in load_digits_covariances())
syn2 = make_syn2(n_per_class=60, random_state=0)
folds = StratifiedKFold(4, shuffle=True, random_state=0)
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, name, (X, y), values in (
    (axes[0], "digits", digits, [0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0]),
    (axes[1], "SynII", syn2, [0.1, 0.3, 0.5, 1.0, 3.0, 8.0, 20.0]),
):
    model = RiemannianLVQ(max_epochs=20, random_state=0)
    scores = validation_curve(model, X, y, param_name="sigma2", param_range=values, cv=folds)
    for part, label in zip(scores, ("training", "test"), strict=True):
        ax.errorbar(values, part.mean(axis=1), part.std(axis=1), marker="o", markersize=4, capsize=3, label=label)
    means = cross_val_score(RiemannianLVQ(max_epochs=0), X, y, cv=folds).mean()
    ax.axhline(means, color="0.4", ls="--", lw=1.2, label="class means (test)")
    best, where = max(zip(scores[1].mean(axis=1), values, strict=True))
    auto = next(one.sigma2 for one in model.fit(X, y).choice_.tried if one.name == "auto")
    print(f"{name:6s} class means {means:.3f}, best {best:.3f} at sigma2 = {where}")
    print(f"       sigma2='auto' tries {auto:.2g} here")
    ax.axvline(auto, color="0.5", ls=":", lw=1.2)
    ax.text(auto, 0.02, ' "auto"', transform=ax.get_xaxis_transform(), fontsize="small", color="0.3")
    ax.set(xscale="log", xlabel="sigma2 (squared distance)", ylabel="accuracy", title=name)
    ax.legend(frameon=False)
plt.show()
