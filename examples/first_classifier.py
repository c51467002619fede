"""A first classifier

Each image of a handwritten digit becomes a 5 x 5 covariance matrix of the position, intensity and gradients of its
pixels. We learn one prototype per digit, and look at how training went and at what was learned. Prototypes are
covariance matrices themselves, so they can be displayed.
"""

import matplotlib.pyplot as plt

from rplvq import RiemannianLVQ
from rplvq.datasets import load_digits_covariances
from rplvq.plotting import plot_history, plot_prototypes
from rplvq.training import EpochScore

# %% Data: matrices (N, 5, 5) with one label each; the first half trains, the second half tests
X, y = load_digits_covariances()
X_train, y_train, X_test, y_test = X[:900], y[:900], X[900:], y[900:]

# %% Fit. Without any epoch, it is the classifier of minimum distance to the class means, where training starts
before = RiemannianLVQ(max_epochs=0).fit(X_train, y_train)
model = RiemannianLVQ(callbacks=[EpochScore()], random_state=0).fit(X_train, y_train)
print(f"test accuracy of the class means (MDM)  {before.score(X_test, y_test):.3f}")
print(f"test accuracy after {model.n_epochs_} epochs          {model.score(X_test, y_test):.3f}")
print(f"prototypes of shape {model.prototypes_.shape}, labels {model.prototype_labels_.tolist()}")

# %% Class probabilities of the first three test samples
print(model.predict_proba(X_test[:3]).round(2))

# %% Training curves and learned matrices
figure, (above, below) = plt.subplots(2, 1, figsize=(11, 10), height_ratios=[3, 1], layout="constrained")
plot_history(model, above)
plot_prototypes(model, below, channels=["x", "y", "intensity", "|dx|", "|dy|"])
below.set_title("the learned prototype of each digit", pad=24)
plt.show()
