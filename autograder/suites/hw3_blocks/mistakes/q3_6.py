# %% tanh-gelu
"""Your GELU is the tanh approximation: close, but off in the fourth decimal. The card asks for the exact one,
with erf."""
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="gelu", dropout=0.0):
        super().__init__()
        if activation not in ("gelu", "relu"):
            raise ValueError(f"unknown activation {activation!r}")
        self.activation = nn.GELU(approximate="tanh") if activation == "gelu" else nn.ReLU()
        self.fc1 = nn.Linear(d_model, d_ff)
        self.fc2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.fc2(self.dropout(self.activation(self.fc1(x))))


# %% sigmoid-gelu
"""Your GELU is x times a sigmoid of 1.702 x, an approximation that is off in the second decimal. The exact one
multiplies by the normal distribution function, which needs erf."""
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="gelu", dropout=0.0):
        super().__init__()
        if activation not in ("gelu", "relu"):
            raise ValueError(f"unknown activation {activation!r}")
        self.activation = activation
        self.fc1 = nn.Linear(d_model, d_ff)
        self.fc2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        h = self.fc1(x)
        h = h * torch.sigmoid(1.702 * h) if self.activation == "gelu" else F.relu(h)
        return self.fc2(self.dropout(h))


# %% no-activation
"""There is nothing between your two linear layers, so together they are one linear map: f(x + y) + f(0) equals
f(x) + f(y)."""
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="gelu", dropout=0.0):
        super().__init__()
        if activation not in ("gelu", "relu"):
            raise ValueError(f"unknown activation {activation!r}")
        self.fc1 = nn.Linear(d_model, d_ff)
        self.fc2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.fc2(self.dropout(self.fc1(x)))


# %% activation-last
"""The activation comes after the second layer, so your outputs are never much below zero. It belongs between
the two layers."""
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="gelu", dropout=0.0):
        super().__init__()
        if activation not in ("gelu", "relu"):
            raise ValueError(f"unknown activation {activation!r}")
        self.activation = {"gelu": F.gelu, "relu": F.relu}[activation]
        self.fc1 = nn.Linear(d_model, d_ff)
        self.fc2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.activation(self.fc2(self.fc1(x))))


# %% always-gelu
"""activation="relu" gives the same as "gelu": the argument is checked and then forgotten."""
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="gelu", dropout=0.0):
        super().__init__()
        if activation not in ("gelu", "relu"):
            raise ValueError(f"unknown activation {activation!r}")
        self.fc1 = nn.Linear(d_model, d_ff)
        self.fc2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.fc2(self.dropout(F.gelu(self.fc1(x))))


# %% always-relu
"""activation="gelu" gives the same as "relu": you always use the ReLU of the first Transformer, and here GELU
is the default."""
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="gelu", dropout=0.0):
        super().__init__()
        if activation not in ("gelu", "relu"):
            raise ValueError(f"unknown activation {activation!r}")
        self.fc1 = nn.Linear(d_model, d_ff)
        self.fc2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.fc2(self.dropout(torch.relu(self.fc1(x))))


# %% unknown-activation-accepted
"""An activation that you do not know is taken for "relu" without a word. A typing error should not train for
a night: raise a `ValueError`."""
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="gelu", dropout=0.0):
        super().__init__()
        self.activation = nn.GELU() if activation == "gelu" else nn.ReLU()
        self.fc1 = nn.Linear(d_model, d_ff)
        self.fc2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.fc2(self.dropout(self.activation(self.fc1(x))))


# %% key-error-for-value-error
"""An unknown activation ends in a `KeyError` of your dictionary. Whoever calls you expects a `ValueError` that
says which names there are."""
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="gelu", dropout=0.0):
        super().__init__()
        self.activation = {"gelu": F.gelu, "relu": F.relu}[activation]
        self.fc1 = nn.Linear(d_model, d_ff)
        self.fc2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.fc2(self.dropout(self.activation(self.fc1(x))))


# %% dropout-missing
"""In training two calls give the same result whatever `dropout` is: the argument is never used. It acts on the
hidden layer, after the activation."""
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="gelu", dropout=0.0):
        super().__init__()
        if activation not in ("gelu", "relu"):
            raise ValueError(f"unknown activation {activation!r}")
        self.activation = nn.GELU() if activation == "gelu" else nn.ReLU()
        self.fc1 = nn.Linear(d_model, d_ff)
        self.fc2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.fc2(self.activation(self.fc1(x)))


# %% dropout-on-the-output
"""Your dropout zeroes entries of the output, bias and all. Inside the feed-forward layer it acts on the hidden
layer, after the activation; the one on the branch belongs to the block around it."""
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="gelu", dropout=0.0):
        super().__init__()
        if activation not in ("gelu", "relu"):
            raise ValueError(f"unknown activation {activation!r}")
        self.activation = nn.GELU() if activation == "gelu" else nn.ReLU()
        self.fc1 = nn.Linear(d_model, d_ff)
        self.fc2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.fc2(self.activation(self.fc1(x))))


# %% dropout-before-the-activation
"""Your dropout comes before the activation. With a GELU that is not the same: the entries that are kept are
scaled up before they are bent, not after."""
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="gelu", dropout=0.0):
        super().__init__()
        if activation not in ("gelu", "relu"):
            raise ValueError(f"unknown activation {activation!r}")
        self.activation = nn.GELU() if activation == "gelu" else nn.ReLU()
        self.fc1 = nn.Linear(d_model, d_ff)
        self.fc2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.fc2(self.activation(self.dropout(self.fc1(x))))


# %% dropout-never-ends
"""In evaluation mode your result still changes from call to call: `F.dropout` is on unless you tell it whether
the module is training."""
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="gelu", dropout=0.0):
        super().__init__()
        if activation not in ("gelu", "relu"):
            raise ValueError(f"unknown activation {activation!r}")
        self.activation = nn.GELU() if activation == "gelu" else nn.ReLU()
        self.fc1 = nn.Linear(d_model, d_ff)
        self.fc2 = nn.Linear(d_ff, d_model)
        self.p = dropout

    def forward(self, x):
        return self.fc2(F.dropout(self.activation(self.fc1(x)), self.p))


# %% residual-inside
"""You add x to the result: the residual belongs to the block that contains this layer. With both it would be
added twice."""
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="gelu", dropout=0.0):
        super().__init__()
        if activation not in ("gelu", "relu"):
            raise ValueError(f"unknown activation {activation!r}")
        self.activation = nn.GELU() if activation == "gelu" else nn.ReLU()
        self.fc1 = nn.Linear(d_model, d_ff)
        self.fc2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return x + self.fc2(self.dropout(self.activation(self.fc1(x))))


# %% refused-only-when-called
"""An unknown activation is refused only when the module is called. Look at the name in `__init__`: the error belongs
where the module is made."""
class FeedForward(FeedForward):
    def __init__(self, d_model, d_ff, activation="gelu", dropout=0.0):
        super().__init__(d_model, d_ff, "relu" if activation == "relu" else "gelu", dropout)
        self.name = activation

    def forward(self, x):
        if self.name not in ("gelu", "relu"):
            raise ValueError(f"unknown activation {self.name!r}")
        return super().forward(x)


# %% capitals-accepted
"""The name "GELU" is taken for "gelu". There are two names, written as they are; anything else raises a `ValueError`."""
class FeedForward(FeedForward):
    def __init__(self, d_model, d_ff, activation="gelu", dropout=0.0):
        super().__init__(d_model, d_ff, activation.lower(), dropout)


# %% relu-by-default
"""Without the argument `activation` you use the ReLU; the default is "gelu"."""
class FeedForward(FeedForward):
    def __init__(self, d_model, d_ff, activation="relu", dropout=0.0):
        super().__init__(d_model, d_ff, activation, dropout)


# %% dropout-on-the-input
"""Your dropout acts on what goes into fc1. It comes after the activation, on the hidden layer."""
class FeedForward(FeedForward):
    def forward(self, x):
        return self.fc2(self.activation(self.fc1(self.dropout(x))))


# %% one-draw-for-a-token
"""All hidden units of a token are dropped or kept together. Dropout draws for every unit on its own."""
class FeedForward(FeedForward):
    def forward(self, x):
        hidden = self.activation(self.fc1(x))
        return self.fc2(hidden * self.dropout(torch.ones_like(hidden[..., :1])))


# %% arguments-in-another-order
"""`FeedForward(d_model, d_ff, "relu")` fails: your third argument is dropout. The order is d_model, d_ff, activation,
dropout."""
class FeedForward(FeedForward):
    def __init__(self, d_model, d_ff, dropout=0.0, activation="gelu"):
        super().__init__(d_model, d_ff, activation, dropout)
