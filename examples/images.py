"""Images: region covariances of handwritten digits

A region covariance describes an image by how the features of its pixels vary together: position, intensity and
gradients. Each image becomes one small matrix, whatever its size. We train prototypes on the digits, and look at which
digits are confused and at the distances of the samples to the prototypes.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split

from rplvq import RiemannianLVQ
from rplvq.datasets import load_digits_covariances
from rplvq.features import region_covariances
from rplvq.plotting import plot_distances

# %% From pixels to matrices; any function of an image can compute the features
raw = region_covariances(load_digits().images, "grey5")
X, y = load_digits_covariances()  # the same features, each scaled to [0, 1], with a little shrinkage
print(f"{len(raw)} images of 8 x 8 pixels -> matrices of shape {raw.shape[1:]}")

# %% Two prototypes per digit, which start at the centres of k-means within each class
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=800, stratify=y, random_state=0)
before = RiemannianLVQ(max_epochs=0).fit(X_train, y_train)
model = RiemannianLVQ(prototypes_per_class=2, init="kmeans", random_state=0)
model.fit(X_train, y_train)
print(f"accuracy of the class means (MDM)  {before.score(X_test, y_test):.3f}")
print(f"accuracy after {model.n_epochs_} epochs           {model.score(X_test, y_test):.3f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
ConfusionMatrixDisplay.from_estimator(model, X_test, y_test, ax=left, cmap="Blues", colorbar=False)
left.set_title("test images")
plot_distances(model, X_test, y_test, ax=right)
right.legend(ncols=5, loc="upper center", bbox_to_anchor=(0.5, -0.12), frameon=False, fontsize="small")
plt.show()
