"""Live EEG: decisions trial by trial from a stream

Lab Streaming Layer (LSL) carries signals from amplifiers to programs. Here MNE-LSL's player stands for the amplifier,
and its `EpochsStream` cuts the stream into trials. A `StreamingPipeline` of covariances, `Recenter` and a classifier
with a reject option was trained on an earlier session. It decides on each trial within milliseconds. Then the running
mean of `Recenter` follows the trial, without its label, because the gains of the electrodes are others than before: the
first trials are rejected, until the session is centred. One trial holds an artefact, which is rejected, too. For an
amplifier of your own, leave out the player and name its stream.

Data: the trials are simulated, a rhythm on either side of the head that rests while the opposite hand moves, so no file
is needed. But the example needs MNE-LSL (`pip install mne-lsl`) and plays a session in real time, for about a minute.
"""

import time
from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from scipy.linalg import eigvalsh
from sklearn.preprocessing import FunctionTransformer

from rplvq import Recenter, RejectOption, RiemannianLVQ
from rplvq.features import trial_covariances
from rplvq.preprocessing import StreamingPipeline

if find_spec("mne_lsl") is None:
    raise SystemExit("This example needs MNE-LSL: pip install mne-lsl")
import mne
from mne_lsl.player import PlayerLSL
from mne_lsl.stream import EpochsStream, StreamLSL

RATE, N_CHANNELS, N_LIVE, ARTEFACT = 160, 8, 24, 15
mne.set_log_level("ERROR")
rng = np.random.default_rng(0)
mixing = rng.normal(size=(N_CHANNELS, N_CHANNELS)) + 2 * np.eye(N_CHANNELS)


def session(n_trials, gains):
    """Return a recording of trials of 2 s, whose last channel marks the class (1: left, 2: right) 0.25 s into each."""
    classes, n_times = rng.permutation(np.arange(n_trials) % 2 + 1), n_trials * 2 * RATE
    sources, phase = rng.normal(size=(N_CHANNELS, n_times)), 2 * np.pi * 11 * np.arange(n_times) / RATE
    for side in (1, 2):  # the rhythm of 11 Hz on one side is weak while the hand of this class moves
        strength = np.where(classes == side, 0.7, 1.8) * rng.gamma(8, 1 / 8, n_trials)
        sources[side] += np.repeat(strength, 2 * RATE) * np.sin(phase + np.cumsum(rng.normal(0, 0.1, n_times)))
    marks = np.zeros((1, n_times))
    marks[0].reshape(n_trials, -1)[:, RATE // 4 : RATE // 4 + 8] = classes[:, None]
    signals = 1e-5 * gains[:, None] * (mixing @ sources)
    info = mne.create_info([f"E{k}" for k in range(N_CHANNELS)] + ["STI"], RATE, ["eeg"] * N_CHANNELS + ["stim"])
    return mne.io.RawArray(np.concatenate([signals, marks]), info), classes


# %% The earlier session, filtered as the stream will be: causally, from 8 to 30 Hz
names = {1: "left", 2: "right", -1: "none"}
window = {"tmin": 0.2, "tmax": 1.5, "baseline": None}
raw, classes = session(100, np.ones(N_CHANNELS))
events = mne.find_events(raw, shortest_event=1)
raw.filter(8, 30, picks="eeg", method="iir", phase="forward")
trials = mne.Epochs(raw, events, picks="eeg", **window).get_data()
option = RejectOption(RiemannianLVQ(random_state=0), coverage=0.9)
recenter = Recenter(online=True, prior_weight=1)  # a small weight: the earlier session says little of this one
pipeline = StreamingPipeline(
    [("covariances", FunctionTransformer(trial_covariances)), ("recenter", recenter), ("lvq", option)]
)
pipeline.fit(trials, classes[: len(trials)])

# %% The live session: decide first; then the running mean of Recenter follows the trial, without its label
raw, _ = session(N_LIVE + 1, np.exp(0.3 * rng.normal(size=N_CHANNELS)))
raw._data[:N_CHANNELS, 2 * RATE * ARTEFACT : 2 * RATE * (ARTEFACT + 1)] *= 8
sklearn.set_config(enable_metadata_routing=True)  # so that the name of the session reaches Recenter
here, away, novelty, latency, states = ["live"], [], [], [], []
print("trial  hand   decision  reason           novelty  mean has moved by  latency")
with PlayerLSL(raw, chunk_size=8, name="amplifier", source_id="rplvq"):
    stream = StreamLSL(bufsize=4, name="amplifier", source_id="rplvq").connect(acquisition_delay=0.01)
    stream.filter(8, 30, picks="eeg")
    epochs = EpochsStream(stream, 4, {"left": 1, "right": 2}, "STI", picks="eeg", **window).connect(0.01)
    while len(states) < N_LIVE:
        while not epochs.n_new_epochs:
            time.sleep(0.005)
        trial, hand = epochs.get_data(n_epochs=1), epochs.events[-1]
        began = time.perf_counter()
        (decision,) = pipeline.predict(trial, groups=here)
        latency.append(1e3 * (time.perf_counter() - began))
        centered = pipeline[:-1].transform(trial, groups=here)
        (reason,), (score,) = pipeline[-1].reasons(centered), pipeline[-1].score_samples(centered)
        pipeline[:-1].partial_fit(trial, groups=here)
        spectrum = eigvalsh(recenter.running_["live"][0], recenter.start_)
        away.append(np.sqrt(np.sum(np.log(spectrum) ** 2)))
        novelty.append(-score)
        states.append("rejected" if decision == -1 else "right" if decision == hand else "wrong")
        print(f"{len(states):5d}  {names[hand]:5s}  {names[decision]:8s}  {reason:15s}", end="")
        print(f"  {-score:7.2f}  {away[-1]:17.2f}  {latency[-1]:4.1f} ms")
    epochs.disconnect()
    stream.disconnect()
print(*(f"{states.count(state)} {state}" for state in ("right", "wrong", "rejected")), sep=", ", end="; ")
print(f"median latency {np.median(latency):.1f} ms, largest {max(latency):.1f} ms")

# %% Trials by their novelty (beyond 1 is unusual), and the way of the running mean from that of the earlier session
ax = plt.figure(figsize=(7, 4), layout="constrained").gca()
for state, color in {"right": "#009E73", "wrong": "#D55E00", "rejected": "#6B6B6B"}.items():
    chosen = np.flatnonzero(np.array(states) == state)
    ax.semilogy(chosen + 1, np.array(novelty)[chosen], "o", color=color, label=state)
ax.semilogy(np.arange(1, N_LIVE + 1), away, color="#0072B2", label="distance that the running mean has moved")
ax.axhline(1, color="black", ls="--", lw=1)
ax.set(xlabel="trial of the live session", ylabel="novelty")
ax.legend(frameon=False, ncols=2)
plt.show()
