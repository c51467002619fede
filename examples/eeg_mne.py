"""EEG with MNE: from epochs to patterns on the scalp

MNE's epochs become covariance matrices, classifiers are scored by cross-validation over whole runs, and the head shows
what separates movements of the left from those of the right fist.
A prototype is a covariance matrix of the electrodes. The generalised eigenvectors of two prototypes are spatial
filters, and each has a pattern on the scalp. The rhythm of a hand area is weaker while the opposite hand moves.
Training moves prototypes away from each other, so they show the differences between the classes larger than they are.

If the environment variable RPLVQ_DATA names a folder with `eegmmi_s001_raw.npz`, the trials are those of subject 1 of
PhysioNet's EEG Motor Movement/Imagery data set; the page "Data sets" of the documentation shows how to make the file.
Otherwise they are simulated by dipoles in a spherical head: a rhythm in the hand area of each hemisphere, alpha waves
whose strength differs from trial to trial, and pink noise everywhere.
"""

import os
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import eigh
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score
from sklearn.pipeline import make_pipeline

from rplvq import RiemannianLVQ
from rplvq.features import trial_covariances

if find_spec("mne") is None:
    raise SystemExit("This example needs MNE-Python: pip install mne")
import mne

NAMES = ["Fz", "FC3", "FC1", "FCz", "FC2", "FC4", "C5", "C3", "C1", "Cz", "C2", "C4", "C6"]
NAMES += ["CP3", "CP1", "CPz", "CP2", "CP4", "P1", "Pz", "P2", "POz"]
info = mne.create_info(NAMES, sfreq=160.0, ch_types="eeg").set_montage("easycap-M1")
rng = np.random.default_rng(0)


def noise(n_sources, power):
    """Return Gaussian signals (120, n_sources, 640) of variance 1 with the given power spectrum (321,)."""
    parts = rng.normal(size=(2, 120, n_sources, 321)) * np.sqrt(power / power.sum())
    return np.fft.irfft(parts[0] + 1j * parts[1], 640) * 320


def simulated():
    """Return trials (120, 22, 640) in volts, labels and runs; sources 0 to 3 are the hand areas and the alpha waves."""
    y, run, f = np.tile(np.repeat(["left fist", "right fist"], 10), 6), np.repeat(range(6), 20), np.linspace(0, 80, 321)
    places = np.vstack([[[-0.6, 0, 0.8], [0.6, 0, 0.8], [-0.3, -0.8, 0.5], [0.3, -0.8, 0.5]], rng.normal(size=(60, 3))])
    places[:, 2] = np.abs(places[:, 2])  # in the upper half of the head
    places /= np.linalg.norm(places, axis=1, keepdims=True)
    head, zeros = mne.make_sphere_model("auto", "auto", info, verbose=False), np.zeros(64)
    outward = places + 0.3 * rng.normal(size=(64, 3))
    dipoles = mne.Dipole(zeros, 0.75 * head.radius * places + head["r0"], zeros + 1e-9, outward, zeros)
    fields = mne.make_forward_dipole(dipoles, head, info, verbose=False)[0]["sol"]["data"]  # (22, 64), V / (A m)
    sources = 20 * noise(64, 1 / np.maximum(f, 1))  # (120, 64, 640), nA m
    rests = np.transpose([y == "left fist", y == "right fist"])  # the left hemisphere rests while the left fist moves
    strength = 40 * np.sqrt(rng.gamma(4, 1 / 4, (120, 2))) * np.where(rests, 1.0, 0.6)
    rhythm = np.exp(-(((f - 11) / 1.5) ** 2)) + 0.3 * np.exp(-(((f - 22) / 2) ** 2))
    sources[:, :2] += strength[..., None] * noise(2, rhythm)
    sources[:, 2:4] += 60 * rng.gamma(1.5, 1 / 1.5, (120, 1, 1)) * noise(2, np.exp(-((f - 10) ** 2)))
    return 1e-9 * fields @ sources + 1e-6 * rng.normal(size=(120, 22, 640)), y, run


def recorded(path):
    """Return trials (90, 22, 640) in volts, labels and runs."""
    with np.load(path) as data:
        kept = np.isin(data["y"], ["left fist", "right fist"])
        return 1e-6 * data["unit_microvolt"] * data["trials"][kept], data["y"][kept], data["run"][kept]


# %% Epochs of 4 s; the rhythms of the hand areas lie between 8 and 30 Hz
path = Path(os.environ.get("RPLVQ_DATA", ""), "eegmmi_s001_raw.npz")
trials, y, run = recorded(path) if path.is_file() else simulated()
events = np.column_stack([640 * np.arange(len(y)), np.zeros(len(y), int), np.where(y == "left fist", 1, 2)])
epochs = mne.EpochsArray(trials, info, events, event_id={"left fist": 1, "right fist": 2}, verbose=False)
epochs.filter(8, 30, verbose=False).crop(0.5, 3.0)
print(f"{len(epochs)} {'recorded' if path.is_file() else 'simulated'} trials in {len(np.unique(run))} runs")

# %% Covariances, and the accuracy in runs that were left out, with the default settings
X = trial_covariances(epochs)
methods = {"class means (MDM)": RiemannianLVQ(max_epochs=0), "rplvq, default": RiemannianLVQ(random_state=0)}
if find_spec("pyriemann"):
    from pyriemann.tangentspace import TangentSpace

    methods["tangent space + logistic regression"] = make_pipeline(TangentSpace(), LogisticRegression())
scores = np.array([cross_val_score(model, X, y, groups=run, cv=LeaveOneGroupOut()) for model in methods.values()])
for name, score in zip(methods, scores, strict=True):
    print(f"{name:36s} {score.mean():.3f} (runs: {score.min():.2f} to {score.max():.2f})")
more, less = (scores[1] > scores[0]).sum(), (scores[1] < scores[0]).sum()
print(f"training was better than the class means in {more} of {len(scores[0])} runs, and worse in {less}")

# %% The prototypes on the head: the power of each electrode, and the patterns of the two most different filters
left, right = methods["rplvq, default"].fit(X, y).prototypes_
shares, filters = eigh(left, left + right)  # the share of the left fist's prototype in what each filter sees
patterns = (left + right) @ filters  # Haufe et al. 2014, https://doi.org/10.1016/j.neuroimage.2013.10.067
axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained")[1].ravel()
axes[0].plot(scores, -np.arange(len(methods)), "o-", color="0.75", lw=1)
axes[0].plot(scores.mean(axis=1), -np.arange(len(methods)), "D", color="#D55E00")
axes[0].set_yticks(-np.arange(len(methods)), [name.replace(" + ", " +\n") for name in methods])
axes[0].set(title="accuracy in each run, and the mean", xlim=(0.4, 1.02), ylim=(0.5 - len(methods), 0.5))
decibels = 10 * np.log10(np.diag(right) / np.diag(left))
image, _ = mne.viz.plot_topomap(decibels, info, axes=axes[1], show=False, extrapolate="local")
plt.colorbar(image, ax=axes[1], shrink=0.6, label="decibels")
axes[1].set_title("power of the prototypes,\nright over left fist")
for ax, column, hand in ((axes[2], -1, "left"), (axes[3], 0, "right")):
    pattern = patterns[:, column] * np.sign(patterns[:, column].sum())
    mne.viz.plot_topomap(pattern, info, axes=ax, show=False, extrapolate="local")
    ax.set_title(f"pattern that is stronger\nwith the {hand} fist")
plt.show()
