"""MDM and related classifiers

A script that was written for pyRiemann's MDM also runs with RiemannianLVQ in its place. We compare both with FgMDM and
with logistic regression in the tangent space, on trials that look like four classes of EEG: all methods get the same
covariances and the same folds, and their differences are tested. Each class occurs in two variants. One mean per class
cannot represent both of them, two prototypes per class can. Here no difference is significant. The script needs
pyRiemann (`pip install pyriemann`).
"""

import matplotlib.pyplot as plt
import numpy as np
from pyriemann.classification import MDM, FgMDM, TSClassifier
from pyriemann.estimation import Covariances

from rplvq import RiemannianLVQ, compare
from rplvq.plotting import plot_comparison

# %% Trials of eight mixed sources; each class is imagined in one of two ways, and each way has its own source
rng = np.random.default_rng(0)
label, way = np.repeat(np.arange(4), 60), rng.integers(0, 2, 240)
power = np.exp(0.3 * rng.standard_normal((240, 8)))
power[np.arange(240), label + 4 * way] *= 1.8
mixing, y = rng.standard_normal((8, 8)), np.array(["left", "right", "feet", "tongue"])[label]
trials = mixing @ (np.sqrt(power)[:, :, None] * rng.standard_normal((240, 8, 250)))
X = Covariances("oas").transform(trials)

# %% The replacement: the call is the same, and prototypes take the place of the means
mdm, ours = MDM().fit(X, y), RiemannianLVQ("riemann", max_epochs=0).fit(X, y)
same = np.allclose(mdm.covmeans_, ours.prototypes_, rtol=1e-4)
print(f"before training the prototypes are MDM's means: {same}")
print(f"and all labels agree: {np.array_equal(mdm.predict(X), ours.predict(X))}")

# %% Four classifiers on the same folds
estimators = {
    "MDM": MDM(),
    "FgMDM": FgMDM(),
    "tangent space": TSClassifier(),
    "RiemannianLVQ": RiemannianLVQ("riemann", prototypes_per_class=2, init="kmeans"),
}
result = compare(X, y, estimators, cv=5, scoring=("accuracy",), random_state=0)
print(result)

figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
plot_comparison(result, ax=axes)
plt.show()
