"""The numbers of the paper's tables, which the page shows beside ours.

Tang, Feng, Tino, Si, Ji, "Probabilistic Learning Vector Quantization on Manifold of Symmetric Positive Definite
Matrices", Neural Networks. Methods have the names of our records.
"""

from __future__ import annotations

# Accuracy, mean and standard deviation over 30 repetitions.
SYNTHETIC = {
    "syn1": {
        "MDRM": (0.9737, 0.0053),
        "PLRSQ-Const": (0.9765, 0.0052),
        "PLRSQ-AN": (0.9770, 0.0055),
        "RSLVQ": (0.9407, 0.0083),
        "GMLVQ": (0.9361, 0.0078),
    },
    "syn2": {
        "MDRM": (0.9074, 0.0089),
        "PLRSQ-Const": (0.9051, 0.0107),
        "PLRSQ-AN": (0.9211, 0.0073),
        "RSLVQ": (0.7752, 0.0125),
        "GMLVQ": (0.8191, 0.0155),
    },
}
# Two-sided p-values of Wilcoxon's signed-rank test over the 30 repetitions.
SYNTHETIC_P = {
    "syn1": {("PLRSQ-AN", "MDRM"): 2.35e-6, ("PLRSQ-Const", "MDRM"): 4.21e-5, ("PLRSQ-AN", "PLRSQ-Const"): 0.24},
    "syn2": {("PLRSQ-AN", "MDRM"): 1.71e-6, ("PLRSQ-Const", "MDRM"): 0.48, ("PLRSQ-AN", "PLRSQ-Const"): 3.48e-6},
}
# SynI and SynII, accuracy in percent at three starts of the step size, and for the slowest one after 150 epochs
# (sigma2 = 1.5, one prototype per class, 30 repetitions). The paper prints that last figure for SynII only.
RATES = {
    "syn1": {"n xi/50, T=100": 97.50, "n xi/100, T=100": 97.43, "n xi/200, T=100": 97.41, "n xi/200, T=150": None},
    "syn2": {"n xi/50, T=100": 89.78, "n xi/100, T=100": 89.49, "n xi/200, T=100": 88.78, "n xi/200, T=150": 89.23},
}
# SynI and SynII, ranges of the selected means, as the text gives them.
SYNTHETIC_SELECTED = {"syn1": (8.0, 9.0), "syn2": (0.45, 0.53)}
# ETH-80, accuracy in percent by number of classes. MDRM and PLRSQ are the paper's own results; KM and KKM (k-means and
# kernel k-means) are quoted there from Jayasumana et al. 2015.
ETH80 = {
    "MDRM": {3: 88.76, 4: 83.61, 5: 68.85, 6: 60.03, 7: 63.46, 8: 63.16},
    "PLRSQ": {3: 98.95, 4: 98.10, 5: 94.27, 6: 86.59, 7: 88.56, 8: 89.09},
    "KM": {3: 75.00, 4: 73.00, 5: 74.60, 6: 66.50, 7: 59.64, 8: 58.31},
    "KKM": {3: 94.83, 4: 87.50, 5: 85.90, 6: 74.50, 7: 73.14, 8: 71.44},
}
# Their standard deviations over the paper's 20 splits, in the order of the numbers of classes.
ETH80_DEVIATIONS = {"MDRM": (0.75, 0.60, 0.77, 0.65, 0.49, 0.60), "PLRSQ": (0.55, 0.53, 0.74, 1.41, 1.04, 0.95)}
# ETH-80, means over the splits of what the paper selected: prototypes per class and sigma2, by number of classes.
ETH80_SELECTED = {3: (4.00, 0.49), 4: (4.75, 0.50), 5: (4.95, 0.50), 6: (5.75, 0.50), 7: (5.75, 0.50), 8: (5.85, 0.50)}
# BCI IV 2a, kappa of subjects 1 to 9. PLRSQ is the annealed version in all tables after the synthetic ones. WaSF
# ConvNet and the competition's winner (FBCSP) use the raw signals, which cannot be recovered from the covariances, so
# we have no results to compare with them.
BCI = {
    "TSSM+LDA": (0.77, 0.33, 0.77, 0.51, 0.35, 0.36, 0.71, 0.72, 0.83),
    "PLRSQ": (0.75, 0.34, 0.80, 0.58, 0.38, 0.37, 0.70, 0.64, 0.75),
    "WaSF ConvNet": (0.63, 0.32, 0.75, 0.44, 0.60, 0.38, 0.69, 0.71, 0.73),
    "FBCSP, the winner": (0.68, 0.42, 0.75, 0.48, 0.40, 0.27, 0.77, 0.75, 0.61),
    "TSLDA": (0.74, 0.38, 0.72, 0.50, 0.26, 0.34, 0.69, 0.71, 0.76),
    "MDRM": (0.75, 0.37, 0.66, 0.53, 0.29, 0.27, 0.56, 0.58, 0.68),
}
# Mean kappas that are printed there without those of the subjects here.
BCI_MEANS = {"2nd of the competition": 0.52, "3rd of the competition": 0.31}
# GLRSQ (Tang, Feng and Tino 2021), tables II, III and VI: for each figure our records, the published mean accuracy, and
# our settings. Its text was not at hand, so deviations are not known. Table VII has the kappas of subjects 1 to 9.
GLRSQ = {
    "SynI": ("syn1", 0.9754, "K = 2, 50 epochs"),
    "SynI, chosen": ("syn1-selection", 0.9754, "K and epochs by validation"),
    "SynII": ("syn2", 0.9137, "K = 2, 50 epochs"),
    "SynII, chosen": ("syn2-selection", 0.9137, "K and epochs by validation"),
    "BCI 2a, 30 folds": ("bci2a-folds:, session 1", 0.7371, "trials of session 1, K = 1, 20 epochs"),
    "BCI 2a, 30 folds of both": ("bci2a-folds:, both sessions", 0.7371, "trials of both sessions, K = 1, 20 epochs"),
}
GLRSQ_KAPPAS = (0.79, 0.32, 0.76, 0.55, 0.34, 0.36, 0.66, 0.70, 0.79)
