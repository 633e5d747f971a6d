"""Our BERT is the published one: with the same weights, transformers' BertForPreTraining gives the same numbers."""

import pytest
import torch

from autograder.suites.hw6_pretraining.berts import Bert

transformers = pytest.importorskip("transformers")
NAMES = {
    "bert.embeddings.word_embeddings": "token_embed", "bert.embeddings.position_embeddings": "position_embed",
    "bert.embeddings.token_type_embeddings": "segment_embed", "bert.embeddings.LayerNorm": "embed_norm",
    "attention.self.query": "self_attn.q_proj", "attention.self.key": "self_attn.k_proj",
    "attention.self.value": "self_attn.v_proj", "attention.output.dense": "self_attn.o_proj",
    "attention.output.LayerNorm": "norm1", "intermediate.dense": "ff.fc1", "output.dense": "ff.fc2",
    "output.LayerNorm": "norm2", "bert.encoder.layer": "layers", "bert.pooler.dense": "pooler",
    "cls.predictions.transform.dense": "mlm_dense", "cls.predictions.transform.LayerNorm": "mlm_norm",
    "cls.seq_relationship": "nsp", "cls.predictions.bias": "mlm_bias",
}


def _ours(state):
    weights = {}
    for name, value in state.items():
        for theirs, mine in NAMES.items():
            name = name.replace(theirs, mine)
        weights[name] = value
    return weights


def test_the_suites_bert_agrees_with_the_published_model():
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=23, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=20,
        max_position_embeddings=9, layer_norm_eps=1e-5, hidden_act="gelu",
    )
    theirs = transformers.BertForPreTraining(config).double().eval()
    for parameter in theirs.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    ids, segments = torch.randint(23, (3, 7)), torch.randint(2, (3, 7))
    padding = torch.arange(7) >= torch.tensor([7, 4, 2])[:, None]
    with torch.no_grad():
        right = theirs(ids, attention_mask=(~padding).long(), token_type_ids=segments)
    words, pairs = Bert(_ours(theirs.state_dict()), 4)(ids, segments, padding)
    torch.testing.assert_close(words[~padding], right.prediction_logits[~padding])
    torch.testing.assert_close(pairs, right.seq_relationship_logits)
