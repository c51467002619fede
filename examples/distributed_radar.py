"""The radar scene on several workers

The labelled pixels of a radar scene as a Dask array: no machine needs to hold them all. Every step sends the prototypes
to the partitions, each returns the sum of its tangents, and one move makes the new prototypes. Here the workers are
threads; a `dask.distributed.Client` of a cluster takes their place without another change. Predictions are lazy.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import maximum_filter, uniform_filter
from showing import coherency_matrices, find_data, generated_scene, show

from rplvq import RiemannianLVQ

try:
    import dask.array as da

    from rplvq.distributed import DistributedLVQ
except ImportError:
    print("Skipped: needs dask (pip install 'rplvq[dask]').")
    raise SystemExit(0) from None

# %% One Hermitian matrix per pixel, from every second pixel of every second row
path = find_data("polsar_sf_airsar_T3.npz")
if path is None:
    print("No polsar_sf_airsar_T3.npz in the folder RPLVQ_DATA: a generated scene takes its place.")
    scene, labels = generated_scene()
else:
    data = np.load(path, allow_pickle=False)
    smooth = (uniform_filter(plane, 5)[::2, ::2] for plane in data["planes"])
    scene = coherency_matrices(dict(zip(data["plane_names"].tolist(), smooth, strict=True)))
    labels = data["labels"][::2, ::2]

# %% Every second block trains, all of its labelled pixels; others, 4 pixels away from them, test
rows, columns = np.indices(labels.shape)
is_training_block = (rows // 75 + columns // 64) % 2 == 0
train, far = is_training_block & (labels > 0), (labels > 0) & ~maximum_filter(is_training_block, 9)
X = da.from_array(scene[train], chunks=(20_000, 3, 3))
print(f"{len(X)} matrices in {X.numblocks[0]} partitions")

# %% Full batches: the weights of a step are means over all pixels, so the step can be large
parts = RiemannianLVQ(batch_size=None, sigma2=0.5, step_size=2.0, max_epochs=15, random_state=0)
model = DistributedLVQ(parts).fit(X, labels[train])
means = DistributedLVQ(parts.set_params(max_epochs=0)).fit(X, labels[train])

# %% Predict lazily, count what is right
unseen = da.from_array(scene[far], chunks=(20_000, 3, 3))
for name, fitted in (("class means", means), ("after 15 steps", model)):
    print(f"{name:15s} accuracy on {len(unseen)} unseen pixels: {fitted.score(unseen, labels[far]):.3f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(model.history_["epoch"], model.history_["cost"] / len(X), color="#0072B2", lw=2)
left.set(xlabel="step", ylabel="mean loss of the training pixels", title="one step an epoch, over all partitions")
left.grid(color="0.9")
predicted = np.asarray(model.predict(da.from_array(scene.reshape(-1, 3, 3), chunks=(20_000, 3, 3))))
right.imshow(predicted.reshape(labels.shape), cmap="tab10", vmin=0, vmax=9, interpolation="nearest")
right.set_title("predicted kinds of ground")
right.set_axis_off()
show(figure)
