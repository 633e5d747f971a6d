"""Cells of homework 5 that need files which nobody downloads here: run on small files of the same format."""

import ast
import functools
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from autograder.homework import read_homework
from autograder.judge.local import reference_names
from course_utils.data import DownloadError, cifar10
from course_utils.hw5 import cifar_recipe, image_sets, photo_picture, published_files
from course_utils.terminal.main import main

PER_FILE = 12


@pytest.fixture(scope="module")
def homework() -> Any:
    return read_homework("hw5_vision")


@pytest.fixture
def notebook(homework: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The reference's names in a folder of its own; `run` runs the cells with these texts, or their functions alone."""
    names = vars(reference_names(homework))
    monkeypatch.chdir(tmp_path)

    def run(*texts: str, functions: bool = False) -> None:
        for text in texts:
            (cell,) = (cell for cell in homework.cells if text in cell.source and cell.kind == "code")
            tree = ast.parse(cell.source)
            if functions:
                tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
            exec(compile(tree, f"<cell with {text}>", "exec"), names)

    return SimpleNamespace(run=run, names=names)


def write_cifar(folder: Path) -> None:
    """Six files in CIFAR-10's binary format, of 12 images each."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for name in [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]:
        records = rng.integers(256, size=(PER_FILE, 3073), dtype=np.uint8)
        records[:, 0] %= 10
        (folder / name).write_bytes(records.tobytes())


def test_the_recipe_for_cifar_runs_stops_and_goes_on_where_it_stopped(
    notebook: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_cifar(tmp_path / "cifar10")
    small = cifar_recipe.SIZES | {"d_model": 16, "n_heads": 2, "d_ff": 16, "n_layers": 1}
    for name, value in {"SIZES": small, "EPOCHS": 3, "BATCH": 27}.items():  # 54 images are kept: two steps an epoch
        monkeypatch.setattr(cifar_recipe, name, value)
    monkeypatch.setitem(image_sets.SETS, "cifar10", ("cifar10", functools.partial(cifar10, per_file=PER_FILE)))
    monkeypatch.setenv("COURSE_RECIPE", "1")
    monkeypatch.delenv("COURSE_FAST", raising=False)
    notebook.run("def fit(train", functions=True)
    notebook.names["named_images"] = image_sets.named_images
    evaluate = notebook.names["evaluate"]
    looks = iter([evaluate])

    def stopping(*args: Any) -> Any:
        """The first look is one; at the second somebody stops the cell."""
        for look in looks:
            return look(*args)
        raise KeyboardInterrupt

    notebook.names["evaluate"] = stopping
    recipe = 'os.environ.get("COURSE_RECIPE")'
    with pytest.raises(KeyboardInterrupt):
        notebook.run(recipe)
    notebook.names["evaluate"] = evaluate
    notebook.run(recipe)
    assert "after 6 steps" in capsys.readouterr().out
    assert notebook.names["cifar_curves"].steps["accuracy"] == [2, 6]  # the look at step 4 was the stop itself
    assert notebook.names["cifar_curves"].steps["loss"] == [5, 6]  # of the run that went on
    assert "head.weight" in load_file("cifar10.safetensors")


def test_augmented_batches_are_moved_and_mirrored_in_a_way_that_the_step_decides() -> None:
    images = torch.arange(6.0 * 3 * 32 * 32).reshape(6, 3, 32, 32)
    batches = cifar_recipe.augmented(images, torch.arange(6), "cpu")
    (first,), (second,) = ([*batches] for _ in range(2))  # an epoch each
    again = next(cifar_recipe.augmented(images, torch.arange(6), "cpu").from_step(1))
    assert torch.equal(second[0], again[0]) and not torch.equal(first[0], second[0])
    for shown, label in zip(*first, strict=True):
        padded = torch.nn.functional.pad(images[label], (4,) * 4)
        crops = [padded[:, r : r + 32, c : c + 32] for r in range(9) for c in range(9)]
        assert any(torch.equal(shown, x) or torch.equal(shown.flip(-1), x) for x in crops)


def save_siglip(folder: Path) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = transformers.SiglipVisionModel(transformers.SiglipVisionConfig(**sizes, image_size=32, patch_size=8))
    state = {f"vision_model.{name}": weight.contiguous() for name, weight in model.state_dict().items()}
    save_file(state | {"text_model.bias": torch.ones(3)}, folder / "siglip.safetensors")
    sizes["intermediate_size"] = 96
    vit = transformers.ViTForImageClassification(
        transformers.ViTConfig(**sizes, image_size=32, patch_size=8, num_labels=7)
    )
    save_file({name: weight.contiguous() for name, weight in vit.state_dict().items()}, folder / "vit.safetensors")
    (folder / "vit_config.json").write_text(json.dumps({"id2label": {str(i): f"thing {i}" for i in range(7)}}))


def test_published_files_show_where_they_look_on_a_photograph(
    notebook: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = ("def layer_weights", "read_published(SIGLIP", "read_published(VIT")
    notebook.run(*cells)
    assert capsys.readouterr().out.count("and that is all right") == 2  # without the files, a line each
    save_siglip(tmp_path)
    shown: list[Any] = []
    draw = photo_picture.photo_with_looks
    monkeypatch.setattr(
        photo_picture, "photo_with_looks", lambda *args, alt: shown.append((args, draw(*args, alt=alt)))
    )
    notebook.run(*cells)
    (photo, looks, title), _ = shown[0]
    assert photo.shape == (3, 48, 48) and "grace_hopper.jpg" in title  # nobody put a photo.jpg there
    assert [tuple(look.shape) for look in looks.values()] == [(4, 4), (6, 6)]
    assert all(abs(float(look.sum()) - 1) < 1e-4 for look in looks.values())
    assert [*shown[1][0][1].values()][0].shape == (4, 4)
    assert capsys.readouterr().out.count("thing ") == 5
    assert "<img" in shown[0][1]._repr_html_()


def test_a_photograph_is_read_upright_and_in_colour(tmp_path: Path) -> None:
    from PIL import Image

    picture = Image.new("RGB", (40, 20), "blue")
    picture.paste("red", (0, 0, 20, 20))  # red on the left
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held upright: the left side is up
    picture.save(tmp_path / "photo.jpg", exif=exif)
    name, pixels = published_files.read_photo(tmp_path, 8)
    assert name == "photo.jpg" and pixels.shape == (3, 8, 8)
    assert pixels[0, 1].min() > 0.8 and pixels[0, -2].max() < 0.2 and pixels[2, -2].min() > 0.8


def test_course_data_tells_what_is_wrong_with_a_copy_of_published_weights(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(*words: str) -> tuple[int, str]:
        return main(["data", *words, "--folder", str(tmp_path)]), capsys.readouterr().out

    code, text = told("siglip")
    assert code == 1 and "not there" in text and "813 MB" in text and "does not know its SHA-256" in text
    save_siglip(tmp_path)
    assert told("siglip")[0] == told("vit")[0] == 0
    whole = (tmp_path / "siglip.safetensors").read_bytes()
    for broken, fault in ((whole[:-1], "promises"), (whole[:40], "no safetensors file"), (b"", "no safetensors file")):
        (tmp_path / "siglip.safetensors").write_bytes(broken)
        code, text = told("siglip")
        assert code == 1 and fault in text
    (tmp_path / "vit.safetensors").write_bytes(whole)
    assert "another model's file" in told("vit")[1]


def test_course_data_reads_a_set_that_is_there_and_fetches_one_that_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def download_set(name: str, folder: Path, address: str | None) -> Path:
        fetched.append(name)
        raise DownloadError("no network")

    fetched: list[str] = []
    monkeypatch.setattr(image_sets, "download_set", download_set)
    monkeypatch.setitem(image_sets.SETS, "cifar10", ("cifar10", functools.partial(cifar10, per_file=PER_FILE)))
    write_cifar(tmp_path / "cifar10")
    assert main(["data", "cifar10", "--folder", str(tmp_path)]) == 0
    assert "60 training and 12 test images of airplane" in capsys.readouterr().out and not fetched
    (tmp_path / "cifar10" / "test_batch.bin").write_bytes(b"cut")
    assert main(["data", "cifar10", "--folder", str(tmp_path)]) == 1 and fetched == ["cifar10"]
    assert main(["data", "fashion", "--folder", str(tmp_path)]) == 1 and fetched == ["cifar10", "fashion-mnist"]
    assert "no network" in capsys.readouterr().out
