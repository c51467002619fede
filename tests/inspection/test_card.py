"""The model card: every fact of it comes from the model or its file."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from rplvq import Recenter, RejectOption, RiemannianLVQ, TransferClassifier, __version__, save_model
from rplvq.datasets import make_syn1
from rplvq.inspection import model_card

X, Y = make_syn1(n_per_class=12, n=4, random_state=0)
NAMES = np.array(["left_hand", "right|hand", "feet", "<tongue>"])[Y]


def test_the_card_of_a_file_states_all_that_it_holds(tmp_path):
    option = RejectOption(RiemannianLVQ("log_euclidean", random_state=0), coverage=0.9)
    model = make_pipeline(Recenter(), option).fit(X, NAMES)
    save_model(model, tmp_path / "hands.npz", data=(X, NAMES))
    facts = model_card(tmp_path / "hands.npz", markdown=False)
    fitted = model[-1]
    classifier, choice = fitted.estimator_, fitted.estimator_.choice_
    assert facts["name"] == "Pipeline"
    assert facts["file"]["written by"].startswith(f"rplvq {__version__}, numpy {np.__version__}")
    assert facts["data"]["shape"] == [48, 4, 4]
    assert [row["samples"] for row in facts["data"]["counts"]] == [12] * 4
    assert facts["steps"][0] == "Recenter()"
    assert facts["classifier"]["classes"] == classifier.classes_.tolist()
    assert facts["classifier"]["parameters"]["metric"] == "log_euclidean"
    assert facts["choice"]["chosen"] == choice.chosen
    assert [row["loss"] for row in facts["choice"]["compared"]] == [one.loss for one in choice.tried]
    assert facts["choice"]["calibration"] == choice.calibration
    limits = [row["squared distance"] for row in facts["rejection"]["novel beyond"]]
    assert limits == fitted.limits_.sqdist.tolist()
    assert facts["rejection"]["promised share of samples with a label"] == 0.9
    json.dumps(facts)
    card = model_card(str(tmp_path / "hands.npz"))
    lines = card.splitlines()
    assert lines[0] == "# Model card: Pipeline"
    titles = ["File", "Data", "Steps", "Rejection", "Classifier", "Choice", "Use"]
    assert [line[3:] for line in lines if line.startswith("## ")] == titles
    for limit, label in zip(limits, ("\\<tongue\\>", "feet", "left\\_hand", "right\\|hand"), strict=True):
        assert f"| {label} | {limit:.6g} |" in lines
    assert f"- calibration: {choice.calibration:.6g}" in lines


def test_a_model_without_a_file_has_a_card_without_versions():
    facts = model_card(RiemannianLVQ(sigma2=1.0, max_epochs=1, random_state=0).fit(X, Y), markdown=False)
    assert list(facts) == ["name", "steps", "classifier"]  # with a sigma2 of the user nothing is chosen
    assert facts["classifier"]["last_epoch"]["epoch"] == 1
    model = TransferClassifier(RiemannianLVQ(max_epochs=0), target="a", cv=2)
    model.fit(X, Y, groups=np.array(["a", "b", "c"])[np.arange(len(X)) % 3])
    facts = model_card(model, markdown=False)
    assert facts["transfer"]["sources"] == model.source_weights_
    assert "# Model card: TransferClassifier" in model_card(model)
    assert "classifier" not in model_card(Recenter().fit(X), markdown=False)


def test_what_is_not_fitted_has_no_card():
    with pytest.raises(NotFittedError):
        model_card(RiemannianLVQ())
