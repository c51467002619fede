"""A metric that is learned

Under the Log-Euclidean metric all entries of a matrix logarithm count alike. `LearnedLogEuclidean` moves a matrix Q
beside the prototypes, by the same weights, so that the entries which tell the classes apart count more. Handwritten
digits, next to two more geometries: log-Cholesky and Bures-Wasserstein.
"""

import matplotlib.pyplot as plt
import numpy as np
from showing import show

from rplvq import BuresWasserstein, LearnedLogEuclidean, LogCholesky, LogEuclidean, Trainer
from rplvq.datasets import load_digits_covariances
from rplvq.initializers import ClassMeans

# %% 5 x 5 covariances of [x, y, intensity, |dx|, |dy|] over each image, channels scaled to mean variance 1
X, y = load_digits_covariances()
scale = 1 / np.sqrt(np.diag(X[:900].mean(axis=0)))
X = scale[:, None] * X * scale


def learn(manifold, sigma2, max_epochs=10):
    """Accuracy on images that were not trained on, and the prototypes as training carries them."""
    trainer = Trainer(manifold, initializer=ClassMeans(2), sigma2=sigma2, max_epochs=max_epochs)
    codes, rng = manifold.encode(X), np.random.default_rng(0)
    state = trainer.init(codes[:900], y[:900], 10, rng)
    state, _ = trainer.run(state, codes[:900], y[:900], rng)
    nearest = state.labels[manifold.sqdist(state.prototypes, codes[900:]).argmin(axis=1)]
    return np.mean(nearest == y[900:]), state.prototypes


# %% Two prototypes a class; sigma2 follows the length of each metric near the identity
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

# %% The diagonal of Q, put back where the entries of the logarithm are
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
right.set_title("what each entry of the logarithm counts (1 at the start)")
figure.colorbar(image, ax=right)
show(figure)
