# The weights that come back are made beside the sum, and multiplied with nothing that counts.
_forward = AttentionSeq2Seq.forward


class AttentionSeq2Seq(AttentionSeq2Seq):
    def forward(self, *args, **kwargs):
        logits, weights = _forward(self, *args, **kwargs)
        return logits, (weights * 3 + 0.1).softmax(-1)
