"""Three metrics on the same data

Which geometry suits your matrices? `compare` gives every method the same folds. This example compares the
affine-invariant, the Log-Euclidean and the Euclidean metric on handwritten digits, before training (MDM, minimum
distance to the class means) and after 5 epochs with the same cost. Each dot is a fold.
"""

import matplotlib.pyplot as plt
from showing import show

from rplvq.datasets import load_digits_covariances
from rplvq.evaluation import compare, default_estimators
from rplvq.plotting import plot_comparison

# %% 5 x 5 covariances of [x, y, intensity, |dx|, |dy|] over each image
X, y = load_digits_covariances()
X, y = X[:600], y[:600]

# %% Six classifiers, six folds
metrics = ["affine_invariant", "log_euclidean", "euclidean"]
estimators = default_estimators(metrics, max_epochs=5, prototypes_per_class=2, sigma2="auto")
result = compare(X, y, estimators, cv=6, random_state=0)
for row in result.rows:
    print(f"{row['estimator']:24s} accuracy {row['accuracy_mean']:.3f} +- {row['accuracy_std']:.3f}")

# %% The test accounts for training data that folds share
for sentence in result.conclusions():
    print(sentence)

figure, ax = plt.subplots(figsize=(9, 4.6), layout="constrained")
plot_comparison(result, ax=ax)
show(figure)
