# %% masked-mean
"""A mean over real tokens, Adam, batches in epochs, state_dict for the copy."""
def fine_tune(bert, examples, labels, n_classes, steps=150, rate=1e-3, seed=0):
    ids, segments, mask = examples
    before = torch.get_rng_state()
    torch.manual_seed(seed)
    model = Mean(bert, n_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    model.train()
    n, done = len(labels), 0
    while done < steps:
        for rows in torch.randperm(n).split(48):
            if done == steps:
                break
            out = model(ids[rows], None if segments is None else segments[rows], None if mask is None else mask[rows])
            optimizer.zero_grad(set_to_none=True)
            nn.CrossEntropyLoss()(out, labels[rows]).backward()
            optimizer.step()
            done += 1
    torch.set_rng_state(before)
    model.eval()
    return model

class Mean(nn.Module):
    def __init__(self, bert, n_classes):
        super().__init__()
        self.encoder = copy.deepcopy(bert)
        for p in self.encoder.parameters():
            p.requires_grad = True
            p.grad = None
        self.out = nn.Linear(bert.token_embed.weight.shape[1], n_classes)

    def forward(self, ids, segments=None, key_padding_mask=None):
        h = self.encoder.encode(ids, segments, key_padding_mask)
        if key_padding_mask is None:
            return self.out(h.mean(1))
        real = (~key_padding_mask).to(h.dtype).unsqueeze(-1)
        return self.out((h * real).sum(1) / real.sum(1))


# %% pooler
"""Through bert's pooler and tanh, full batches, the seed in a generator, clipping."""
class Pooled(nn.Module):
    def __init__(self, bert, n_classes, generator):
        super().__init__()
        self.model = copy.deepcopy(bert)
        self.model.requires_grad_(True)
        D = bert.pooler.out_features
        self.weight = nn.Parameter(0.02 * torch.randn(n_classes, D, generator=generator))
        self.bias = nn.Parameter(torch.zeros(n_classes))

    def forward(self, ids, segments=None, key_padding_mask=None):
        first = self.model.encode(ids, segments, key_padding_mask)[:, 0]
        return F.linear(torch.tanh(self.model.pooler(first)), self.weight, self.bias)

def fine_tune(bert, examples, labels, n_classes, steps=150, rate=1e-3, seed=0):
    g = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    net = Pooled(bert, n_classes, g).train()
    opt = torch.optim.AdamW(net.parameters(), lr=rate, weight_decay=0.01)
    for _ in range(steps):
        rows = torch.randint(0, labels.shape[0], (32,), generator=g)
        loss = F.cross_entropy(net(*[x if x is None else x[rows] for x in examples]), labels[rows])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
    return net.eval()


# %% sequential-head
"""A head of two layers on the first token, the whole set in every step."""
def fine_tune(bert, examples, labels, n_classes, steps=150, rate=1e-3, seed=0):
    torch.manual_seed(seed)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = copy.deepcopy(bert).requires_grad_(True)
            D = bert.token_embed.embedding_dim
            self.head = nn.Sequential(nn.Linear(D, D), nn.GELU(), nn.Linear(D, n_classes))

        def forward(self, ids, segments=None, key_padding_mask=None):
            return self.head(self.body.encode(ids, segments=segments, key_padding_mask=key_padding_mask)[:, 0])

    net = Net()
    net.train(True)
    optimizer = torch.optim.AdamW(net.parameters(), lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(net(*examples), labels).backward()
        optimizer.step()
    net.train(False)
    return net
