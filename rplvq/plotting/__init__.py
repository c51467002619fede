"""Pictures of comparisons, training, prototypes and data; matplotlib is only imported when one is drawn.

Every function takes matplotlib ``ax`` and returns what it drew on, as scikit-learn's displays do. Without ``ax`` it
makes a new figure, or raises ImportError if matplotlib is missing. ValueError says which argument does not fit the
others: a label per sample, a name per channel, a metric that was scored, a history with its columns. A confusion matrix
is drawn by :class:`sklearn.metrics.ConfusionMatrixDisplay`, which takes any fitted classifier.
"""

from rplvq.plotting._evaluation import plot_accuracy_reject, plot_comparison, save_comparison
from rplvq.plotting._explanation import plot_explanation
from rplvq.plotting._prototypes import plot_distances, plot_ellipses, plot_prototypes
from rplvq.plotting._training import plot_history

__all__ = [
    "plot_accuracy_reject", "plot_comparison", "plot_distances", "plot_ellipses", "plot_explanation", "plot_history",
    "plot_prototypes", "save_comparison",
]  # fmt: skip
