"""Three metrics on the same data

This example compares the affine-invariant, the Log-Euclidean and the Euclidean metric on handwritten digits, before
training (MDM, minimum distance to the class means) and after 20 epochs with the same cost. `compare` gives every method
the same folds, and each dot is a fold.
"""

from textwrap import fill

import matplotlib.pyplot as plt

from rplvq.datasets import load_digits_covariances
from rplvq.evaluation import compare, default_estimators
from rplvq.plotting import plot_comparison

# %% 5 x 5 covariances of [x, y, intensity, |dx|, |dy|] over each image
X, y = load_digits_covariances()
X, y = X[:1000], y[:1000]

# %% Six classifiers, ten folds
metrics = ["affine_invariant", "log_euclidean", "euclidean"]
estimators = default_estimators(metrics, max_epochs=20, prototypes_per_class=2, sigma2="auto")
result = compare(X, y, estimators, cv=10, random_state=0)
for row in result.rows:
    print(f"{row['estimator']:24s} accuracy {row['accuracy_mean']:.3f} +- {row['accuracy_std']:.3f}")

# %% The test accounts for training data that folds share
for sentence in result.conclusions():
    print("", fill(sentence, width=100), sep="\n")

figure, ax = plt.subplots(figsize=(9, 4.6), layout="constrained")
plot_comparison(result, ax=ax)
plt.show()
