"""From EEG-like trials to a cross-validated score

Two imagined movements change the power of a rhythm over the left or the right side of the head. We simulate a session
of 240 trials with 8 channels in microvolts, in which the subject blinks in three trials out of ten and relaxes in some.
Neither has to do with the classes, but both move the class means. Training moves the prototypes back to where they
separate the classes. The covariances and the classifier form one scikit-learn pipeline. Nothing is tuned.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline

from rplvq import RiemannianLVQ, TrialCovariances
from rplvq.features import trial_covariances
from rplvq.plotting import plot_ellipses, plot_prototypes

# %% Background activity of 8 sources, 2 s at 128 Hz, and a rhythm that is weaker over the active side, C3 or C4
rng = np.random.default_rng(0)
names, n_trials, n_times = ["F3", "F4", "C3", "C4", "P3", "P4", "O1", "O2"], 240, 256
y = np.repeat(["left", "right"], n_trials // 2)
sources = rng.standard_normal((n_trials, 8, n_times)) * 4.0
phase = 2 * np.pi * (11 * np.arange(n_times) / 128 + rng.random((n_trials, 1)))
strength = np.where(y == "left", 1.0, 2.0) * rng.gamma(8.0, 1 / 8.0, n_trials)
sources[:, 2] += 5.0 * strength[:, None] * np.sin(phase)
sources[:, 3] += 5.0 * (3.0 - strength)[:, None] * np.sin(phase + 0.5)

# %% What has nothing to do with the classes: blinks in three trials out of ten, and a rhythm of rest at the back
blinks = (rng.random(n_trials) < 0.3) * rng.gamma(4.0, 1 / 4.0, n_trials)
onset = rng.integers(40, n_times - 40, (n_trials, 1))
sources[:, :2] += (100.0 * blinks[:, None] * np.exp(-(((np.arange(n_times) - onset) / 12.0) ** 2)))[:, None]
rest = 10.0 * rng.gamma(1.0, 1.0, (n_trials, 1)) * np.sin(phase * 10 / 11 + 1.0)
sources[:, 6:] += rest[:, None]
mixing = np.eye(8) + rng.normal(scale=0.35, size=(8, 8))
trials = mixing @ sources  # (240, 8, 256), microvolts

# %% The covariances are part of the pipeline, so that training never sees a test trial
to_covariance = TrialCovariances(shrinkage="ledoit_wolf")
folds = StratifiedKFold(10, shuffle=True, random_state=0)
models = {"class means (MDM)": RiemannianLVQ(max_epochs=0), "default": RiemannianLVQ(random_state=0)}
for name, model in models.items():
    pipeline = make_pipeline(to_covariance, model)
    scores = cross_val_score(pipeline, trials, y, cv=folds)
    print(f"{name:17s}: accuracy {scores.mean():.3f} +- {scores.std(ddof=1):.3f} in 10 folds (chance is 0.5)")

# %% What was learned: the two electrodes over the motor areas, in microvolts, and all channels
X = trial_covariances(trials, shrinkage="ledoit_wolf")
model = RiemannianLVQ(random_state=0).fit(X, y)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
plot_ellipses(model, left, X=X, y=y, channels=(2, 3), names=("C3", "C4"), unit="uV")
left.set_title("prototypes (thick) and trials (thin)")
plot_prototypes(model, right, channels=names, unit="uV^2")
plt.show()
