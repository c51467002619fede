"""Pictures of comparisons, training, prototypes and data; matplotlib is only imported when one is drawn.

Every function takes matplotlib ``ax`` and returns what it drew on, as scikit-learn's displays do. A confusion
matrix is drawn by :class:`sklearn.metrics.ConfusionMatrixDisplay`, which takes any fitted classifier.
"""

from rplvq.plotting._certainty import plot_accuracy_reject, plot_reliability
from rplvq.plotting._comparison import plot_comparison, save_comparison
from rplvq.plotting._data import plot_distances, plot_spectra
from rplvq.plotting._history import plot_history
from rplvq.plotting._prototypes import plot_ellipses, plot_prototypes
from rplvq.plotting._sensitivity import plot_sigma2

__all__ = [
    "plot_accuracy_reject",
    "plot_comparison",
    "plot_distances",
    "plot_ellipses",
    "plot_history",
    "plot_prototypes",
    "plot_reliability",
    "plot_sigma2",
    "plot_spectra",
    "save_comparison",
]
