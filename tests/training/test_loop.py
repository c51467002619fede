"""The loop over epochs: its hooks, what callbacks are told and may answer, and what an error in one of them costs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import RSLVQ, Constant, EarlyStopping, EuclideanVectors, RiemannianLVQ, Trainer
from rplvq.arrays import Samples
from rplvq.training import EpochReport, EpochScore, Progress, Score, State, calling, history_row, measure, run_epochs
from tests.problems import spd_classes, vector_classes

ONE = Constant(1.0)


def begun(rng):
    """A run of one prototype on the line, before its first epoch."""
    state = State(np.zeros((1, 1)), np.array([0]), ONE, ONE, 0, 1.0, 1.0)
    return Progress(state, state, np.inf, (), rng.bit_generator.state)


def counting(rng):
    """An epoch that adds a random number to the prototype."""

    def epoch(state):
        state = state._replace(prototypes=state.prototypes + rng.normal(), epoch=state.epoch + 1)
        return state, history_row(state, Score(10.0 - state.epoch, 0.5), 0, 0.0)

    return epoch


def run(hooks=(), n_epochs=4, progress=None, **settings):
    """Run to the end: the progress after each epoch."""
    rng = np.random.default_rng(0)
    return list(run_epochs(counting(rng), progress or begun(rng), rng, n_epochs, hooks, **settings))


def train(X, y, **settings):
    """Run a trainer on vectors."""
    settings = {"max_epochs": 3, "sigma2": 1.0, "step_size": 0.05} | settings
    trainer, samples, rng = Trainer(EuclideanVectors(), **settings), Samples(X, y), np.random.default_rng(0)
    return trainer.run(trainer.init(samples, y.max() + 1, rng), samples, rng)


# --- hooks


def test_every_epoch_is_yielded_with_its_row_and_random_state():
    steps = np.random.default_rng(0).normal(size=4)
    found = run()
    assert [progress.state.epoch for progress in found] == [1, 2, 3, 4]
    assert_allclose([progress.state.prototypes[0, 0] for progress in found], np.cumsum(steps))
    assert [len(progress.rows) for progress in found] == [1, 2, 3, 4]
    assert [row["cost"] for row in found[-1].rows] == [9, 8, 7, 6]
    again = run(progress=found[1])
    assert [progress.state.epoch for progress in again] == [3, 4]
    assert_array_equal(again[-1].state.prototypes, found[-1].state.prototypes)


def test_hooks_run_in_order_and_the_next_one_sees_what_the_last_one_changed():
    seen = []

    def first(progress):
        return progress.with_row({"extra": progress.row["cost"] / 2})

    def second(progress):
        seen.append(progress.row["extra"])
        return progress._replace(state=progress.state._replace(sigma2=float(progress.state.epoch)))

    found = run([first, second])
    assert seen == [4.5, 4.0, 3.5, 3.0]
    assert [row["extra"] for row in found[-1].rows] == seen
    assert [progress.state.sigma2 for progress in found] == [1, 2, 3, 4]


def test_a_hook_may_end_training():
    def stop(progress):
        return progress._replace(stopped=progress.state.epoch == 2)

    assert [progress.state.epoch for progress in run([stop])] == [1, 2]
    assert run(progress=run([stop])[-1]) == []  # a run that is over is not continued


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, SystemExit])
def test_an_epoch_is_yielded_before_the_exception_of_a_failing_hook(error):
    late = []

    def fail(progress):
        if progress.state.epoch == 2:
            raise error("no")
        return progress.with_row({"extra": 1.0})

    rng = np.random.default_rng(0)
    hooks = [lambda progress: progress.with_row({"first": 2.0}), fail, lambda progress: late.append(0) or progress]
    training = run_epochs(counting(rng), begun(rng), rng, 4, hooks)
    assert next(training).state.epoch == 1
    kept = next(training)
    assert (kept.state.epoch, len(kept.rows), len(late)) == (2, 2, 1)
    assert kept.row["first"] == 2.0  # what hooks before it changed is kept
    assert "extra" not in kept.row
    with pytest.raises(error, match="no"):
        next(training)
    # All that is needed to continue is there.
    assert_array_equal(run(progress=kept)[-1].state.prototypes, run()[-1].state.prototypes)


def test_an_exception_in_an_epoch_is_not_held_back():
    def broken(state):
        raise RuntimeError("in the epoch")

    rng = np.random.default_rng(0)
    with pytest.raises(RuntimeError, match="in the epoch"):
        next(run_epochs(broken, begun(rng), rng, 3))


# --- callbacks


def test_callbacks_are_told_of_each_epoch():
    X, y = vector_classes()
    seen: list[EpochReport] = []
    state, history = train(X, y, callbacks=[seen.append])
    assert [report.row["epoch"] for report in seen] == [1, 2, 3]
    assert [report.n_epochs for report in seen] == [3, 3, 3]
    assert [report.row["cost"] for report in seen] == history["cost"].tolist()
    assert [report.progress.state.epoch for report in seen] == [1, 2, 3]
    assert [report.origin for report in seen] == [None, None, None]
    assert_array_equal(seen[-1].state.prototypes, state.prototypes)
    assert np.abs(seen[0].state.prototypes - state.prototypes).max() > 0


def test_a_callback_of_an_estimator_is_told_what_the_fit_started_from():
    X, y = spd_classes(per_class=6)
    seen = []
    model = RiemannianLVQ(max_epochs=2, sigma2=1.0, callbacks=[seen.append], random_state=0)
    model.fit(X, np.array(["a", "b"])[y])
    origin = seen[0].origin
    assert origin is seen[1].origin
    assert origin.parameters == model.get_params(deep=False)
    assert origin.classes.tolist() == ["a", "b"]
    assert_array_equal(np.sort(np.asarray(origin.samples.codes), axis=0), np.sort(X, axis=0))


def test_a_callback_that_returns_true_stops():
    X, y = vector_classes()
    late: list[int] = []
    settings = {"callbacks": [lambda report: report.row["epoch"] == 2, lambda report: late.append(1)]}
    state, history = train(X, y, max_epochs=9, **settings)
    assert history["epoch"].tolist() == [1, 2]
    assert state.epoch == 2
    assert len(late) == 2  # the other callback was still told of the last epoch
    assert RiemannianLVQ("euclidean_vectors", sigma2=1.0, max_epochs=9, **settings).fit(X, y).n_epochs_ == 2


def test_a_callback_that_returns_numbers_adds_them_to_the_row_of_the_history():
    X, y = vector_classes()
    later = []

    def numbers(report):
        return {"double": 2.0 * report.row["epoch"], "cost": 7.0}

    state, history = train(X, y, callbacks=[numbers, lambda report: later.append(report.row["double"])])
    assert history["double"].tolist() == [2, 4, 6]
    assert history["cost"].tolist() == [7, 7, 7]  # a column that exists is replaced
    assert later == [2, 4, 6]
    assert state.epoch == 3


def test_a_column_that_some_epochs_lack_is_not_a_number_there():
    X, y = vector_classes()
    sometimes = [lambda report: {"even": 1.0} if report.row["epoch"] % 2 == 0 else {}]
    _, history = train(X, y, callbacks=sometimes, max_epochs=4)
    assert_array_equal(history["even"], [np.nan, 1, np.nan, 1])
    assert history["epoch"].tolist() == [1, 2, 3, 4]  # an empty mapping does not stop training


@pytest.mark.parametrize("answer", [None, False, True, np.True_, {"x": 1.0}], ids=repr)
def test_what_a_callback_returns_decides_what_the_hook_does(answer):
    rng = np.random.default_rng(0)
    progress = begun(rng).advance(*counting(rng)(begun(rng).state), rng)
    found = calling(lambda report: answer, 4, lambda state: Score(1.0, 0.0))(progress)
    assert found.stopped == (not isinstance(answer, dict) and bool(answer))
    assert found.row == progress.row | (answer if isinstance(answer, dict) else {})
    assert found.state is progress.state


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("continue", "must return None, True, False or a mapping of numbers, got 'continue'"),
        (0.3, "must return None, True, False or a mapping of numbers, got 0.3"),
        ({"accuracy": np.ones(2)}, "must map names .* to numbers, got {'accuracy': array"),
        ({"note": None}, "must map names .* to numbers, got {'note': None}"),
        ({1: 2.0}, "must map names .* to numbers, got {1: 2.0}"),
        ({"epoch": 100}, "names other than epoch, .* to numbers, got {'epoch': 100}"),
    ],
)
def test_an_answer_of_a_callback_that_is_no_row_is_refused(answer, sentence):
    X, y = vector_classes()
    with pytest.raises(TypeError, match=sentence):
        train(X, y, callbacks=[lambda report: answer])


def test_the_score_of_a_report_is_measured_when_it_is_asked_for():
    X, y = vector_classes(shift=0.5, n_classes=3)
    found = []
    state, history = train(X, y, callbacks=[lambda report: found.append(report.score())])
    sqdist = ((X[:, None] - state.prototypes) ** 2).sum(axis=2)
    assert_allclose(found[-1].cost, RSLVQ()(sqdist, y, state.labels, 1.0).loss.sum())
    assert_allclose(found[-1].error, (sqdist.argmin(axis=1) != y).mean())
    assert (np.array([score.cost for score in found]) != history["cost"]).all()


# --- EpochScore


@pytest.mark.parametrize("weighted", [False, True])
def test_epoch_score_measures_the_prototypes_after_each_epoch(weighted):
    X, y = vector_classes(shift=0.5, n_classes=3)
    weights = np.random.default_rng(1).uniform(0, 2, len(y)) if weighted else None
    states, samples = [], Samples(X, y, weights)
    callbacks = [EpochScore(), lambda report: states.append(report.state)]
    trainer = Trainer(EuclideanVectors(), sigma2=1.0, step_size=0.05, max_epochs=3, callbacks=callbacks)
    rng = np.random.default_rng(0)
    _, history = trainer.run(trainer.init(samples, 3, rng), samples, rng)
    share = np.ones(len(y)) if weights is None else weights
    assert history["epoch"].tolist() == [1, 2, 3]
    for row, state in enumerate(states):
        sqdist = ((X[:, None] - state.prototypes) ** 2).sum(axis=2)
        assert_allclose(history["cost"][row], share @ RSLVQ()(sqdist, y, state.labels, 1.0).loss)
        wrong = sqdist.argmin(axis=1) != y
        assert_allclose(history["training_error"][row], share @ wrong / share.sum())


def test_epoch_score_changes_nothing_but_the_history():
    X, y = spd_classes(per_class=10)
    settings = {"sigma2": 1.0, "max_epochs": 4, "random_state": 0}
    plain = RiemannianLVQ(**settings).fit(X, y)
    scored = RiemannianLVQ(callbacks=[EpochScore()], **settings).fit(X, y)
    assert_array_equal(scored.prototypes_, plain.prototypes_)
    assert list(scored.history_) == list(plain.history_)
    assert scored.history_["training_error"][-1] == 1 - scored.score(X, y)
    loss = -scored.predict_log_proba(X)[np.arange(len(y)), y].sum()
    assert scored.history_["cost"][-1] == pytest.approx(loss, rel=1e-9)


def test_epoch_score_and_early_stopping_agree_about_the_epochs():
    X, y = vector_classes(per_class=30, shift=0.5)
    stopping = EarlyStopping(fraction=0.3, patience=2)
    settings = {"sigma2": 1.0, "step_size": 0.3, "early_stopping": stopping, "random_state": 0}
    model = RiemannianLVQ("euclidean_vectors", callbacks=[EpochScore()], **settings).fit(X, y)
    plain = RiemannianLVQ("euclidean_vectors", **settings).fit(X, y)
    assert_array_equal(model.history_["validation_cost"], plain.history_["validation_cost"])
    assert_array_equal(model.prototypes_, plain.prototypes_)


def test_epoch_score_needs_a_report_of_a_run():
    state = begun(np.random.default_rng(0)).state
    with pytest.raises(ValueError, match="EpochScore needs a report with a score"):
        EpochScore()(EpochReport(state, 3, {}))


def test_parts_of_the_samples_are_measured_as_the_whole(monkeypatch):
    X, y = vector_classes(per_class=40, n_classes=3)
    samples = Samples(X, y, np.linspace(0, 2, len(y)))
    state = Trainer(EuclideanVectors(), sigma2=1.0).init(samples, 3, np.random.default_rng(0))
    whole = measure(EuclideanVectors(), RSLVQ(), state, samples).score()
    monkeypatch.setattr("rplvq.arrays._samples.BLOCK_BYTES", 1 << 11)
    assert measure(EuclideanVectors(), RSLVQ(), state, samples).score() == whole


def test_a_printed_report_is_one_line_with_its_epoch(capsys):
    X, y = spd_classes(per_class=20)
    epochs = []
    settings = {"sigma2": 1.0, "step_size": 0.1, "early_stopping": True, "max_epochs": 3, "random_state": 0}
    report_epoch = lambda report: epochs.append(report.epoch)  # noqa: E731
    model = RiemannianLVQ(callbacks=[print, report_epoch], **settings).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert epochs == [1, 2, 3]
    assert len(lines) == 3
    cost, error = model.history_["cost"][1], model.history_["training_error"][1]
    assert lines[1].startswith(f"epoch 2 of 3: cost {cost:.3g}, training error {error:.3g}, sigma2 1, step size 0.1")
    assert "validation cost" in lines[1]
    assert lines[1].endswith(", 2 prototypes")


def test_a_report_made_by_hand_can_be_printed():
    state = begun(np.random.default_rng(0)).state
    assert str(EpochReport(state, 3, {})) == "epoch 0 of 3: 1 prototype"
