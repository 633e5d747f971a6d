# %% erf-written-out
"""GELU from its definition; ReLU by clamp; the check in an else."""
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="gelu", dropout=0.0):
        super().__init__()
        self.fc1 = nn.Linear(d_model, d_ff)
        self.fc2 = nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(dropout)
        if activation == "gelu":
            self.bend = lambda h: 0.5 * h * (1 + torch.erf(h / math.sqrt(2)))
        elif activation == "relu":
            self.bend = lambda h: h.clamp(min=0)
        else:
            raise ValueError("activation must be gelu or relu")

    def forward(self, x):
        return self.fc2(self.drop(self.bend(self.fc1(x))))


# %% dictionary-of-modules
"""Activations as modules in a dictionary; KeyError turned into ValueError."""
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="gelu", dropout=0.0):
        super().__init__()
        try:
            self.activation = {"gelu": nn.GELU(), "relu": nn.ReLU()}[activation]
        except KeyError:
            raise ValueError(f"no activation {activation!r}") from None
        self.fc1, self.fc2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.after = nn.Sequential(self.activation, nn.Dropout(p=dropout))

    def forward(self, x):
        return self.fc2(self.after(self.fc1(x)))


# %% functional
"""Weights used through `F.linear`, dropout through `F.dropout` with the module's mode; ReLU in place on its own
tensor."""
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="gelu", dropout=0.0):
        if activation not in {"gelu", "relu"}:
            raise ValueError(activation)
        super().__init__()
        self.kind, self.p = activation, dropout
        self.fc1 = nn.Linear(d_model, d_ff)
        self.fc2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        h = F.linear(x, self.fc1.weight, self.fc1.bias)
        h = F.gelu(h) if self.kind == "gelu" else h.relu_()
        h = F.dropout(h, self.p, training=self.training)
        return F.linear(h, self.fc2.weight, self.fc2.bias)


# %% own-dropout-and-a-buffer
"""A dropout of one's own, a match statement, and a buffer that nobody needs."""
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="gelu", dropout=0.0):
        super().__init__()
        match activation:
            case "gelu" | "relu":
                self.activation = activation
            case _:
                raise ValueError("activation: gelu or relu")
        self.dropout = dropout
        self.fc1 = nn.Linear(d_model, d_ff)
        self.fc2 = nn.Linear(d_ff, d_model)
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        h = self.fc1(x)
        h = torch.where(h > 0, h, 0.0) if self.activation == "relu" else h * torch.special.ndtr(h)
        if self.training and self.dropout > 0:
            keep = torch.rand_like(h) >= self.dropout
            h = h * keep / (1 - self.dropout) if self.dropout < 1 else h * 0.0
        return self.fc2(h)


# %% getattr-of-functional
"""The activation looked up by name in `torch.nn.functional` after a check; a loop over the parts."""
class FeedForward(nn.Module):
    names = ("gelu", "relu")

    def __init__(self, d_model, d_ff, activation="gelu", dropout=0.0):
        super().__init__()
        if self.names.count(activation) == 0:
            raise ValueError(f"{activation} is not one of {self.names}")
        self.fc1 = nn.Linear(d_model, d_ff, bias=True)
        self.fc2 = nn.Linear(d_ff, d_model, bias=True)
        self.activation, self.dropout = activation, nn.Dropout(dropout)

    def forward(self, x):
        for part in (self.fc1, getattr(F, self.activation), self.dropout, self.fc2):
            x = part(x)
        return x
