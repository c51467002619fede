"""A metric that is learned

Under the Log-Euclidean metric all entries of a matrix logarithm have the same weight. `LearnedLogEuclidean` learns a
matrix Q together with the prototypes, so that the entries that separate the classes get more weight. We compare it on
handwritten digits with the plain Log-Euclidean metric and with two other geometries, log-Cholesky and
Bures-Wasserstein.
"""

import matplotlib.pyplot as plt
import numpy as np

from rplvq import BuresWasserstein, LearnedLogEuclidean, LogCholesky, LogEuclidean, Trainer
from rplvq.arrays import Samples
from rplvq.datasets import load_digits_covariances
from rplvq.initializers import ClassMeans

# %% 5 x 5 covariances of [x, y, intensity, |dx|, |dy|] over each image, channels scaled to mean variance 1
X, y = load_digits_covariances()
scale = 1 / np.sqrt(np.diag(X[:900].mean(axis=0)))
X = scale[:, None] * X * scale


def learn(manifold, sigma2, max_epochs=20):
    """Return the accuracy on new images, and the prototypes in the manifold's internal representation."""
    trainer = Trainer(manifold, initializer=ClassMeans(2), sigma2=sigma2, max_epochs=max_epochs)
    codes, rng = manifold.encode(X), np.random.default_rng(0)
    samples = Samples(codes[:900], y[:900])
    state, _ = trainer.run(trainer.init(samples, 10, rng), samples, rng)
    nearest = state.labels[manifold.sqdist(state.prototypes, codes[900:]).argmin(axis=1)]
    return np.mean(nearest == y[900:]), state.prototypes


# %% Two prototypes per class; sigma2 follows the length of each metric near the identity
learned = LearnedLogEuclidean(rate=0.03)
parts = {
    "log-Cholesky": (LogCholesky(), 0.05),
    "Bures-Wasserstein": (BuresWasserstein(), 0.025),
    "Log-Euclidean": (LogEuclidean(), 0.1),
    "learned Log-Euclidean": (learned, 0.1),
}
before, after = [], []
for name, (manifold, sigma2) in parts.items():
    before.append(learn(manifold, sigma2, max_epochs=0)[0])
    accuracy, prototypes = learn(manifold, sigma2)
    after.append(accuracy)
    print(f"{name:22s} accuracy {before[-1]:.3f} at the class means, {accuracy:.3f} trained")

# %% The diagonal of Q, arranged like the entries of the logarithm
weight = np.zeros((5, 5))
rows, columns = np.triu_indices(5, 1)
weight[np.diag_indices(5)] = np.diag(learned.metric(prototypes))[:5]
weight[rows, columns] = weight[columns, rows] = np.diag(learned.metric(prototypes))[5:]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
places = np.arange(len(parts))
left.barh(places + 0.2, before, 0.38, color="#6B6B6B", label="class means")
left.barh(places - 0.2, after, 0.38, color="#0072B2", label="trained")
left.set_yticks(places, list(parts))
left.set(xlim=(0, 1), xlabel="accuracy on 897 new images")
left.legend(frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
image = right.imshow(weight, cmap="cividis", vmin=0)
names = ["x", "y", "I", "|dx|", "|dy|"]
right.set_xticks(range(5), names)
right.set_yticks(range(5), names)
right.set_title("weight of each entry of the logarithm (1 at the start)")
figure.colorbar(image, ax=right)
plt.show()
