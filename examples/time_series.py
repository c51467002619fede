"""Time series of unequal lengths

A multivariate series becomes one matrix, whatever its length: the covariance of its channels. This matrix does not
contain the order in time, unless each channel is stacked with its own past. In this example two channels follow each
other with a delay of one step: in one class the second follows the first, in another class the first follows the
second, in a third class neither follows. Plain covariances cannot separate the first two classes, and covariances with
the past can. The page on pyRiemann, MOABB and time series has scores on real series.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_validate

from rplvq import RiemannianLVQ
from rplvq.features import trial_covariances
from rplvq.plotting import plot_prototypes

# %% 150 series of 3 channels and 40 to 120 samples; an autoregression of order 1 makes them
rng = np.random.default_rng(0)
kinds = np.repeat(["0 leads", "1 leads", "neither"], 50)


def series(kind: str) -> np.ndarray:
    """Return one series of shape (3, length)."""
    coupling = 0.4 * np.eye(3)
    if kind != "neither":
        leader = int(kind[0])
        coupling[1 - leader, leader] = 0.5
    noise = rng.normal(size=(rng.integers(40, 121), 3))
    states = [noise[0]]
    for kick in noise[1:]:
        states.append(coupling @ states[-1] + kick)
    channels = np.transpose(states)
    return channels / channels.std(axis=1, keepdims=True)  # without this, the larger channel is the follower


data = [series(kind) for kind in kinds]
lengths = [each.shape[1] for each in data]
print(f"{len(data)} series of 3 channels, {min(lengths)} to {max(lengths)} samples")


# %% One matrix per series, with the shrinkage of Ledoit and Wolf because some series are short
def matrices(delays: int) -> np.ndarray:
    """Covariances (N, n, n) of all channels at the times t, t - 1, ..., t - delays; n = 3 (delays + 1)."""
    covariances = []
    for each in data:
        length = each.shape[1] - delays
        stacked = np.concatenate([each[:, delays - lag : delays - lag + length] for lag in range(delays + 1)])
        covariances.append(trial_covariances(stacked[None], shrinkage="ledoit_wolf")[0])
    return np.stack(covariances)


# %% The same classifier and folds for all
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained", width_ratios=[1, 3])
names = ["plain", "1 step back", "2 steps back"]
for delays, name in enumerate(names):
    X = matrices(delays)
    model = RiemannianLVQ(random_state=0)
    scores = cross_validate(model, X, kinds, cv=5)["test_score"]
    means = cross_validate(RiemannianLVQ(max_epochs=0), X, kinds, cv=5)["test_score"]
    print(f"{name:12s} n = {X.shape[1]}: accuracy {scores.mean():.3f}, class means (MDM) {means.mean():.3f}")
    left.errorbar(delays, scores.mean(), scores.std(ddof=1), fmt="o", color="#0072B2", capsize=4)
left.axhline(1 / 3, color="0.6", ls=":")
left.set(
    xticks=range(3),
    xticklabels=names,
    xlim=(-0.5, 2.5),
    ylim=(0.25, 1.02),
    ylabel="accuracy in 5 folds",
    title="covariances",
)
left.tick_params(axis="x", rotation=30)

# %% The prototypes show which channel follows: present (rows) against past (columns)
model.fit(matrices(1), kinds)
plot_prototypes(model, right, channels=["0", "1", "2", "0, past", "1, past", "2, past"])
right.set_title("prototypes with 1 step back", pad=24)
plt.show()
