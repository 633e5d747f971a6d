"""What homework 6 gives to the part on writing: GPT-2's file, claims, an Echo, torch's own layers as a match."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from autograder.homework import read_homework
from autograder.judge.local import reference_names
from course_utils.hw6 import gpt2_file
from course_utils.hw6.claims import CLAIMS, holds
from course_utils.hw6.echo import echo, echo_weights
from course_utils.hw6.published import published
from course_utils.hw6.torch_gpt import loaded, twin_logits
from course_utils.terminal.main import main


@pytest.fixture(scope="module")
def ours() -> SimpleNamespace:
    return reference_names(read_homework("hw6_pretraining", draft=True))


def test_our_gpt_with_published_weights_is_transformers_gpt2(ours: SimpleNamespace) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 61, "n_positions": 17, "n_embd": 24, "n_layer": 3, "n_head": 4}
    torch.manual_seed(0)
    theirs = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes)).double().eval()
    for parameter in theirs.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    model = ours.GPT(61, 24, 4, 96, 3, 17).double().eval()
    model.load_state_dict(ours.from_gpt2(theirs.state_dict()))
    ids = torch.randint(61, (3, 17))
    with torch.no_grad():
        torch.testing.assert_close(model(ids), theirs(ids).logits, rtol=0, atol=1e-6)
        padding = torch.arange(17) < torch.tensor([[0], [4], [11]])
        places = (torch.cumsum(~padding, 1) - 1).clamp(min=0)
        right = theirs(ids, attention_mask=(~padding).long(), position_ids=places).logits
        torch.testing.assert_close(model(ids, padding)[~padding], right[~padding], rtol=0, atol=1e-6)


def test_our_gpt_is_a_model_of_torchs_own_layers(ours: SimpleNamespace) -> None:
    state, weights = published(0, V=11, D=8, L=2)
    ids = torch.randint(11, (2, 9), generator=torch.Generator().manual_seed(1))
    model = loaded(ours.GPT, ours.from_gpt2(state), 2)
    torch.testing.assert_close(model(ids).detach(), twin_logits(weights, 2, ids))


def test_an_echo_gives_the_same_with_a_cache_and_behind_padding() -> None:
    model = echo(echo_weights(0, 7, 4, 12))
    ids = torch.randint(7, (1, 6), generator=torch.Generator().manual_seed(2))
    right, cache = model(ids), model.new_cache()
    pieces = torch.cat([model(ids[:, :4], None, cache), model(ids[:, 4:], None, cache)], 1)
    torch.testing.assert_close(pieces, right)
    filled = torch.cat([torch.tensor([[3, 3]]), ids], 1)
    torch.testing.assert_close(model(filled, torch.arange(8)[None] < 2)[:, 2:], right)


def test_every_claim_is_broken_by_the_references_example_and_not_by_a_tame_one(ours: SimpleNamespace) -> None:
    found = ours.false_claims()
    assert set(found) == set(CLAIMS)
    assert not any(holds(name, example) for name, example in found.items())
    one_layer = {W: torch.randn(1, 3, 3) for W in ("Wq", "Wk", "Wv")}
    assert holds("order_needs_positions", {"x": torch.randn(4, 3), "order": [2, 1, 0], **one_layer})
    assert holds("nucleus_keeps_most_words", {"probabilities": [0.25] * 4})
    with pytest.raises(ValueError, match="no order of the 3 tokens"):
        holds("order_needs_positions", {"x": torch.randn(4, 3), "order": [0, 1], **one_layer})


def test_course_data_tells_where_gpt2_is_and_what_is_wrong_with_a_copy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "gpt2", "--folder", str(tmp_path)]) == 1
    assert gpt2_file.SHA256 in capsys.readouterr().out
    (tmp_path / gpt2_file.WEIGHTS).write_bytes(b"cut")
    assert main(["data", "gpt2", "--folder", str(tmp_path), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert not told["ready"] and "3 bytes" in told["told"][0]


def test_a_file_of_another_size_or_sum_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from safetensors.torch import save_file

    path = tmp_path / gpt2_file.WEIGHTS
    save_file({"transformer.wte.weight": torch.zeros(2, 2)}, path)
    assert "not the published file" in gpt2_file.tell_gpt2(tmp_path)[1][0]
    monkeypatch.setattr(gpt2_file, "SIZE", path.stat().st_size)
    assert "SHA-256" in gpt2_file.tell_gpt2(tmp_path)[1][0]
    assert gpt2_file.find_gpt2(tmp_path) is not None and gpt2_file.find_gpt2(tmp_path / "no") is None


def test_words_become_tokens_by_the_library_tokenizers(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    kept = tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")]))
    kept.decoder = tokenizers.decoders.Fuse()
    kept.save(str(tmp_path / gpt2_file.TOKENS))
    encode, decode = gpt2_file.Gpt2File(tmp_path / gpt2_file.WEIGHTS, tmp_path / gpt2_file.TOKENS).tokenizer()
    assert encode("abb") == [2, 1] and decode([2, 1]) == "abb"
