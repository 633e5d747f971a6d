"""Training tools: repeatable batches, checkpoints that resume exactly, bars, early stop and curves."""

import contextlib
import io
import json
import sys
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file, save_model
from torch import nn

from course_utils.notebook.bars import without_bars
from course_utils.notebook.training import (
    CheckpointError,
    Curves,
    EarlyStop,
    autocast_for,
    fast,
    load_checkpoint,
    loader,
    progress,
    read_note,
    save_checkpoint,
    to_device,
)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Tied(nn.Module):
    """A small model with a tied weight, dropout, a buffer and a weight that is a view."""

    def __init__(self, tie=True):
        super().__init__()
        self.embedding = nn.Embedding(7, 6)
        self.mix = nn.Linear(6, 6)
        self.mix.weight = nn.Parameter(torch.randn(6, 6).T)  # not contiguous
        self.dropout = nn.Dropout(0.5)
        self.out = nn.Linear(6, 7, bias=False)
        self.register_buffer("scale", torch.tensor(1.5))
        if tie:
            self.out.weight = self.embedding.weight

    def forward(self, x):
        return self.out(self.dropout(self.mix(self.embedding(x)))) * self.scale


def start(kind=torch.optim.AdamW, seed=0, **options):
    torch.manual_seed(seed)
    model = Tied()
    return model, kind(model.parameters(), lr=1e-2, **options)


def train(model, optimizer, first, last):
    """Steps first .. last - 1, with dropout and a rate that depends on the step."""
    x = torch.arange(50) % 7
    batches = loader(x, (x + 1) % 7, batch_size=8, seed=5).from_step(first)
    for step, (inputs, labels) in zip(range(first, last), batches, strict=False):
        for group in optimizer.param_groups:
            group["lr"] = 1e-2 / (step + 1)
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def equal(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (torch.optim.AdamW, {}),
        (torch.optim.Adam, {"amsgrad": True, "betas": (0.9, 0.98)}),
        (torch.optim.SGD, {"momentum": 0.9}),
        (torch.optim.SGD, {}),
    ],
)
def test_a_resumed_run_ends_exactly_like_one_without_a_break(tmp_path, kind, options):
    model, optimizer = start(kind, **options)
    train(model, optimizer, 0, 20)
    broken, its_optimizer = start(kind, **options)
    train(broken, its_optimizer, 0, 9)
    save_checkpoint(tmp_path / "run.safetensors", broken, its_optimizer, step=9, note="half way")
    torch.rand(3)  # the break disturbs the random numbers
    fresh, its_optimizer = start(kind, seed=99, **options)
    step = load_checkpoint(tmp_path / "run.safetensors", fresh, its_optimizer)
    assert step == 9 and read_note(tmp_path / "run.safetensors") == "half way"
    train(fresh, its_optimizer, step, 20)
    assert equal(fresh.state_dict(), model.state_dict())


def test_tied_weights_are_saved_once_and_stay_tied(tmp_path):
    model, _ = start()
    save_checkpoint(tmp_path / "tied.safetensors", model)
    assert sorted(load_file(tmp_path / "tied.safetensors")) == ["embedding.weight", "mix.bias", "mix.weight", "scale"]
    fresh = Tied()
    load_checkpoint(tmp_path / "tied.safetensors", fresh)
    assert fresh.out.weight is fresh.embedding.weight
    assert equal(fresh.state_dict(), model.state_dict())
    untied = Tied(tie=False)
    load_checkpoint(tmp_path / "tied.safetensors", untied)
    assert equal(untied.state_dict(), model.state_dict())
    del untied.out  # a model that uses the embedding's weight directly has one name less
    load_checkpoint(tmp_path / "tied.safetensors", untied)


def test_a_file_with_both_of_two_tied_names_must_agree(tmp_path):
    untied = Tied(tie=False)
    save_checkpoint(tmp_path / "untied.safetensors", untied)
    with pytest.raises(CheckpointError, match="two different tensors for embedding.weight and out.weight"):
        load_checkpoint(tmp_path / "untied.safetensors", Tied())
    untied.out.weight.data.copy_(untied.embedding.weight)
    save_checkpoint(tmp_path / "untied.safetensors", untied)
    load_checkpoint(tmp_path / "untied.safetensors", Tied())


def test_files_of_plain_safetensors_load_too(tmp_path):
    model, fresh = Tied(), Tied()
    save_model(model, str(tmp_path / "a.safetensors"))  # keeps one of the tied names, perhaps the other one
    assert load_checkpoint(tmp_path / "a.safetensors", fresh) == 0
    assert equal(fresh.state_dict(), model.state_dict())
    linear, other = nn.Linear(2, 3), nn.Linear(2, 3)
    save_file(linear.state_dict(), tmp_path / "b.safetensors")
    load_checkpoint(tmp_path / "b.safetensors", other)
    assert equal(other.state_dict(), linear.state_dict())


def test_views_of_one_memory_are_saved_whole(tmp_path):
    model, fresh = nn.Module(), nn.Module()
    fused = torch.randn(4, 6)
    for part in (model, fresh):
        part.top, part.bottom = nn.Parameter(fused[:2]), nn.Parameter(fused[2:])
    save_checkpoint(tmp_path / "views.safetensors", model)
    fresh.top, fresh.bottom = nn.Parameter(torch.zeros(2, 6)), nn.Parameter(torch.zeros(2, 6))
    load_checkpoint(tmp_path / "views.safetensors", fresh)
    assert torch.equal(torch.cat([fresh.top, fresh.bottom]), fused)


def test_loading_without_an_optimizer_leaves_the_random_numbers_alone(tmp_path):
    model, optimizer = start()
    train(model, optimizer, 0, 2)
    save_checkpoint(tmp_path / "run.safetensors", model, optimizer, step=2)
    torch.manual_seed(7)
    load_checkpoint(tmp_path / "run.safetensors", Tied())
    fresh = Tied()
    torch.manual_seed(7)
    Tied()
    assert equal(Tied().state_dict(), fresh.state_dict())


def test_a_compiled_model_is_saved_under_its_own_names(tmp_path):
    class Compiled(nn.Module):  # what torch.compile returns holds the model under this name
        def __init__(self, model):
            super().__init__()
            self._orig_mod = model

    model, fresh = Tied(), Tied()
    save_checkpoint(tmp_path / "run.safetensors", Compiled(model))
    load_checkpoint(tmp_path / "run.safetensors", Compiled(fresh))
    assert equal(fresh.state_dict(), model.state_dict())


def test_an_interrupted_save_keeps_the_old_file(tmp_path, monkeypatch):
    model, path = Tied(), tmp_path / "run.safetensors"
    save_checkpoint(path, model, step=1)

    def fail(tensors, name, metadata):
        name.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr("course_utils.notebook.checkpoints.save_file", fail)
    with pytest.raises(OSError, match="no space"):
        save_checkpoint(path, model, step=2)
    assert load_checkpoint(path, model) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["run.safetensors"]


def whole_file(path):
    save_checkpoint(path, *start(), step=3)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: b"", "cut, damaged or no safetensors file"),
        (lambda b: b[:5], "cut, damaged or no safetensors file"),
        (lambda b: b[:100], "cut, damaged or no safetensors file"),
        (lambda b: b[:-1], "cut, damaged or no safetensors file"),
        (lambda b: b + b"x", "cut, damaged or no safetensors file"),
        (lambda b: b[:8] + b"?" + b[9:], "cut, damaged or no safetensors file"),
        (lambda b: b"\xff" * 8 + b[8:], "cut, damaged or no safetensors file"),
        (lambda b: b"<html>not found</html>" * 9, "cut, damaged or no safetensors file"),
        (lambda b: b"PK\x03\x04" + b[4:], "looks like a file of torch.save"),
        (lambda b: b.replace(b'"step":"3"', b'"step":"x"'), "its 'step' cannot be read"),
    ],
)
def test_a_damaged_checkpoint_is_explained_and_changes_nothing(tmp_path, change, message):
    path = tmp_path / "run.safetensors"
    path.write_bytes(change(whole_file(path)))
    model = Tied()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(path, model)
    assert equal(model.state_dict(), before)


def test_a_checkpoint_of_another_model_is_explained(tmp_path):
    path = tmp_path / "run.safetensors"
    save_checkpoint(path, nn.Linear(3, 4))
    with pytest.raises(CheckpointError, match=r"weight is \[4, 3\] there and \[4, 5\] in the model"):
        load_checkpoint(path, nn.Linear(5, 4))
    with pytest.raises(CheckpointError, match="it has no scale; it has no embedding.weight;.* and 4 more"):
        load_checkpoint(path, Tied())
    with pytest.raises(CheckpointError, match="the model has no bias"):
        load_checkpoint(path, nn.Linear(3, 4, bias=False))
    with pytest.raises(FileNotFoundError, match="no checkpoint at .*other.safetensors: train first"):
        load_checkpoint(tmp_path / "other.safetensors", Tied())


def test_a_checkpoint_with_another_optimizer_is_explained(tmp_path):
    path = tmp_path / "run.safetensors"
    model, optimizer = start()
    save_checkpoint(path, model)
    with pytest.raises(CheckpointError, match="has no optimizer state to go on from"):
        load_checkpoint(path, model, optimizer)
    save_checkpoint(path, model, optimizer)
    with pytest.raises(CheckpointError, match="was saved with AdamW, not SGD"):
        load_checkpoint(path, model, torch.optim.SGD(model.parameters(), lr=0.1))
    with pytest.raises(CheckpointError, match="an optimizer of other parameters"):
        load_checkpoint(path, model, torch.optim.AdamW([model.mix.weight]))
    linear = nn.Linear(2, 3)
    save_file(linear.state_dict(), path, metadata={"optimizer": json.dumps({"kind": "AdamW"})})
    with pytest.raises(CheckpointError, match="an optimizer of other parameters"):
        load_checkpoint(path, linear, torch.optim.AdamW(linear.parameters()))


def test_batches_depend_on_the_seed_and_cover_every_row_once():
    x = torch.arange(10)
    first = loader(x, x * 2, batch_size=4, seed=3)
    assert len(first) == 3
    epochs = [list(first), list(first)]
    for epoch in epochs:
        assert [len(a) for a, _ in epoch] == [4, 4, 2]
        assert sorted(torch.cat([a for a, _ in epoch]).tolist()) == list(range(10))
        assert all(torch.equal(b, 2 * a) for a, b in epoch)
    rows = [[a.tolist() for a, _ in epoch] for epoch in epochs]
    assert rows[0] != rows[1]
    again = loader(x, seed=3, batch_size=4)
    assert [[a.tolist() for (a,) in again] for _ in range(2)] == rows
    assert [a.tolist() for (a,) in loader(x, seed=4, batch_size=4)] != rows[0]
    assert [a.tolist() for (a,) in loader(x, batch_size=8, shuffle=False)] == [list(range(8)), [8, 9]]


def test_batches_go_on_from_any_step():
    batches = loader(torch.arange(10), batch_size=4, seed=1)
    endless = batches.from_step()
    run = [next(endless)[0].tolist() for _ in range(9)]
    later = batches.from_step(5)
    assert [next(later)[0].tolist() for _ in range(4)] == run[5:]
    assert [a.tolist() for (a,) in batches] == run[:3]


def test_a_loader_does_not_touch_the_global_random_numbers():
    torch.manual_seed(0)
    expected = torch.rand(2)
    torch.manual_seed(0)
    list(loader(torch.arange(10)))
    assert torch.equal(torch.rand(2), expected)


def test_a_loader_says_what_it_needs():
    for tensors, size in (
        ((torch.zeros(3), torch.zeros(4)), 2),
        ((torch.zeros(0),), 2),
        ((torch.zeros(3),), 0),
        ((), 2),
    ):
        with pytest.raises(ValueError, match="a loader needs tensors of one length"):
            loader(*tensors, batch_size=size)


def test_towards_cuda_a_batch_goes_through_pinned_memory(monkeypatch):
    calls = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: calls.append("pinned") or self)
    monkeypatch.setattr(torch.Tensor, "to", lambda self, *a, **k: calls.append((a, k)) or self)
    to_device([torch.zeros(2)], "cuda")
    assert calls == ["pinned", (("cuda",), {"non_blocking": True})]


def test_autocast_is_bfloat16_on_cuda_and_nothing_on_the_cpu(monkeypatch):
    assert isinstance(autocast_for("cpu"), contextlib.nullcontext)
    asked = []
    monkeypatch.setattr(torch, "autocast", lambda kind, dtype: asked.append((kind, dtype)))
    autocast_for(torch.device("cuda", 0))
    assert asked == [("cuda", torch.bfloat16)]


@pytest.mark.parametrize(("value", "expected"), [(None, False), ("", False), ("0", False), ("1", True)])
def test_fast_follows_the_environment(monkeypatch, value, expected):
    monkeypatch.delenv("COURSE_FAST", raising=False)
    if value is not None:
        monkeypatch.setenv("COURSE_FAST", value)
    assert fast() is expected


def test_early_stop_waits_for_its_patience():
    stop = EarlyStop(patience=2)
    seen = [(stop(value), stop.improved) for value in (3.0, 2.0, 2.0, 1.0, float("nan"), 1.5)]
    assert seen == [(False, True), (False, True), (False, False), (False, True), (False, False), (True, False)]
    assert stop.best == 1.0
    higher = EarlyStop(patience=1, higher=True)
    assert [higher(torch.tensor(value)) for value in (0.5, 0.6, 0.6)] == [False, False, True]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def watch(monkeypatch):
    """A terminal in the place of stdout."""
    monkeypatch.delenv("COURSE_GRADING", raising=False)
    monkeypatch.setattr(sys, "stdout", Terminal())
    return sys.stdout


def test_a_bar_shows_loss_and_rate_on_a_terminal(monkeypatch):
    terminal = watch(monkeypatch)
    bar = progress(range(3), label="training")
    for step in bar:
        bar.show(loss=torch.tensor(1.0 / (step + 1)), rate=1e-3)
    shown = terminal.getvalue().split("\r")[-1]
    assert "training: 100%" in shown and "3/3" in shown and "loss 0.333, rate 0.001" in shown


def test_a_bar_without_a_known_length_and_one_left_early(monkeypatch):
    terminal = watch(monkeypatch)
    for _ in progress(iter([1, 2])):
        pass
    assert "2it" in terminal.getvalue()
    for item in progress(range(100), total=50, label="early"):
        if item == 3:
            break
    assert terminal.getvalue().endswith("\n") and "3/50" in terminal.getvalue()
    assert list(progress([])) == []


def test_nobody_sees_a_bar_when_grading_or_in_a_pipe(monkeypatch):
    terminal = watch(monkeypatch)
    monkeypatch.setenv("COURSE_GRADING", "1")
    bar = progress([1, 2])
    assert [bar.show(loss=1.0) or item for item in bar] == [1, 2] and terminal.getvalue() == ""
    monkeypatch.delenv("COURSE_GRADING")
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert list(progress([1, 2])) == [1, 2] and sys.stdout.getvalue() == ""


def test_a_notebook_shows_bars(monkeypatch):
    monkeypatch.delenv("COURSE_GRADING", raising=False)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert list(progress([1, 2])) == [1, 2] and "2/2" in sys.stdout.getvalue()
    shown = sys.stdout.getvalue()
    with without_bars():  # as in a check
        assert list(progress([1, 2, 3])) == [1, 2, 3] and sys.stdout.getvalue() == shown


def test_curves_of_different_steps_are_drawn_together(monkeypatch):
    drawn = []
    monkeypatch.setattr("course_utils.notebook.plots.curves", lambda x, ys, **options: drawn.append((x, ys, options)))
    curves = Curves()
    for step in range(5):
        curves.add(step, loss=torch.tensor(4.0 - step))
    curves.add(4, accuracy=0.8)
    curves.add(2, accuracy=0.4)
    curves.plot(title="A run", ylabel="value")
    (x, ys, options) = drawn[0]
    assert x.tolist() == [0, 1, 2, 3, 4] and ys["loss"].tolist() == [4, 3, 2, 1, 0]
    assert ys["accuracy"].tolist()[2:] == pytest.approx([0.4, 0.6, 0.8]) and ys["accuracy"][:2].tolist() != [0.4, 0.4]
    assert "loss goes from 4 at step 0 to 0 at step 4." in options["alt"]
    curves.plot("loss", smooth=2, alt="Mine.")
    assert drawn[1][1]["loss"].tolist() == [4, 3.5, 2.5, 1.5, 0.5] and drawn[1][2]["alt"] == "Mine."


def test_a_real_picture_of_curves_has_alt_text():
    curves = Curves()
    with pytest.raises(ValueError, match="nothing to plot yet"):
        curves.plot()
    curves.add(0, loss=2.0)
    curves.add(10, loss=1.0)
    assert curves.plot(title="A run").alt.startswith("Line chart over the steps of training. loss goes from 2")
