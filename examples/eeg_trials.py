"""From EEG-like trials to a cross-validated score

Two imagined movements change the power of a rhythm over the left or the right side of the head. We simulate trials of 8
channels in microvolts, turn them into covariance matrices, and score a classifier by cross-validation. The covariances
and the classifier form one scikit-learn pipeline. Nothing is tuned.
"""

import matplotlib.pyplot as plt
import numpy as np
from showing import show
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from rplvq import RiemannianLVQ
from rplvq.plotting import plot_ellipses, plot_spectra
from rplvq.preprocessing import trial_covariances

# %% 120 trials of 8 channels, 2 s at 128 Hz: pink background, and a rhythm at two places
rng = np.random.default_rng(0)
names, n_times = ["F3", "F4", "C3", "C4", "P3", "P4", "O1", "O2"], 256
y = np.repeat(["left", "right"], 60)
mixing = rng.normal(scale=0.35, size=(8, 8)) + np.eye(8)
sources = rng.standard_normal((120, 8, n_times)) * 4.0
phase = 2 * np.pi * (11 * np.arange(n_times) / 128 + rng.random((120, 1)))
strength = np.where(y == "left", 1.0, 2.0) * rng.gamma(8.0, 1 / 8.0, 120)
sources[:, 2] += 5.0 * strength[:, None] * np.sin(phase)  # the rhythm is weaker over the active side, C3 or C4
sources[:, 3] += 5.0 * (3.0 - strength)[:, None] * np.sin(phase + 0.5)
trials = mixing @ sources  # (120, 8, 256), microvolts

# %% The covariances are part of the pipeline, so that training never sees a test trial
to_covariance = FunctionTransformer(trial_covariances, kw_args={"shrinkage": "ledoit_wolf"})
pipeline = make_pipeline(to_covariance, RiemannianLVQ(max_epochs=10, random_state=0))
scores = cross_val_score(pipeline, trials, y, cv=10)
print(f"accuracy {scores.mean():.3f} +- {scores.std(ddof=1):.3f} in 10 folds (chance is 0.5)")

# %% What was learned, for the two electrodes over the motor areas, in microvolts
X = trial_covariances(trials, shrinkage="ledoit_wolf")
model = RiemannianLVQ(max_epochs=10, random_state=0).fit(X, y)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
plot_ellipses(model, left, X=X, y=y, channels=(2, 3), names=("C3", "C4"), unit="uV")
left.set_title("prototypes (thick) and trials (thin)")
plot_spectra(X, y, right, unit="uV^2")
right.set_title("median and 10-90 % of the trials")
show(figure)
