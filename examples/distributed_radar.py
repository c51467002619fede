"""A radar scene on several workers

The labelled pixels of a radar scene as a Dask array: no machine needs to hold them all. Every step sends the prototypes
to the partitions, each returns the sum of its tangents, and one move makes the new prototypes. Here the workers are
threads; a `dask.distributed.Client` of a cluster takes their place without another change. Predictions are lazy. The
scene is simulated: seven materials of complex Wishart speckle, two kinds of ground consist of two materials each.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from rplvq import RiemannianLVQ
from rplvq.distributed import DistributedLVQ

# %% One 3 x 3 Hermitian matrix per pixel, the mean of 25 looks, in fields of 15 x 16 pixels
rng = np.random.default_rng(0)
materials = np.kron(rng.integers(0, 7, (15, 16)), np.ones((15, 16), dtype=int))  # (225, 240)
roots = np.eye(3) + 0.5 * (rng.normal(size=(7, 3, 3)) + 1j * rng.normal(size=(7, 3, 3)))
shape = (*materials.shape, 3, 25)
looks = roots[materials] @ (rng.normal(size=shape) + 1j * rng.normal(size=shape))
scene = looks @ looks.conj().swapaxes(-1, -2) / 50
labels = np.array([1, 1, 2, 2, 3, 4, 5])[materials]

# %% Every second block trains, the others test
rows, columns = np.indices(labels.shape)
train = (rows // 75 + columns // 60) % 2 == 0
X = da.from_array(scene[train], chunks=(5_000, 3, 3))
print(f"{len(X)} matrices in {X.numblocks[0]} partitions")

# %% Full batches: the weights of a step are means over all pixels, so the step can be large
parts = RiemannianLVQ(batch_size=None, sigma2=0.5, step_size=2.0, max_epochs=20, random_state=0)
model = DistributedLVQ(parts).fit(X, labels[train])
means = DistributedLVQ(parts.set_params(max_epochs=0)).fit(X, labels[train])

# %% Predict lazily, count what is right
unseen = da.from_array(scene[~train], chunks=(5_000, 3, 3))
for name, fitted in (("class means (MDM)", means), ("after 20 steps", model)):
    print(f"{name:17s} accuracy on {len(unseen)} unseen pixels: {fitted.score(unseen, labels[~train]):.3f}")

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
left.plot(model.history_["epoch"], model.history_["cost"] / len(X), color="#0072B2", lw=2)
left.set(xlabel="step", ylabel="mean loss of the training pixels", title="one step an epoch, over all partitions")
left.grid(color="0.9")
for ax, fitted, title in ((middle, means, "predicted by the class means"), (right, model, "after 20 steps")):
    predicted = np.asarray(fitted.predict(da.from_array(scene.reshape(-1, 3, 3), chunks=(5_000, 3, 3))))
    ax.imshow(predicted.reshape(labels.shape), cmap="tab10", vmin=0, vmax=9, interpolation="nearest")
    ax.set_title(title)
    ax.set_axis_off()
plt.show()
