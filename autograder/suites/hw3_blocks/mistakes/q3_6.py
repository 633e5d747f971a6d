# %% tanh-gelu price=0.2
"""Your GELU is the tanh approximation: close, but off in the fourth decimal. The card asks for the exact one,
with erf."""
replace("F.gelu if", 'nn.GELU(approximate="tanh") if')

# %% sigmoid-gelu
"""Your GELU is x times a sigmoid of 1.702 x, an approximation that is off in the second decimal. The exact one
multiplies by the normal distribution function, which needs erf."""
replace("F.gelu if", "(lambda h: h * torch.sigmoid(1.702 * h)) if")

# %% no-activation price=0.6
"""There is nothing between your two linear layers, so together they are one linear map: f(x + y) + f(0) equals
f(x) + f(y)."""
replace("self.activation(self.fc1(x))", "self.fc1(x)")

# %% activation-last
"""The activation comes after the second layer, so your outputs are never much below zero. It belongs between
the two layers."""
replace("self.fc2(self.dropout(self.activation(self.fc1(x))))",
        "self.dropout(self.activation(self.fc2(self.fc1(x))))")

# %% always-gelu
"""activation="relu" gives the same as "gelu": the argument is checked and then forgotten."""
replace('F.gelu if activation == "gelu" else F.relu', "F.gelu")

# %% always-relu
"""activation="gelu" gives the same as "relu": you always use the ReLU of the first Transformer, and here GELU
is the default."""
replace('F.gelu if activation == "gelu" else F.relu', "F.relu")

# %% unknown-activation-accepted price=0.2
"""An activation that you do not know is taken for "relu" without a word. A typing error should not train for
a night: raise a `ValueError`."""
replace("raise ValueError(f'activation is \"gelu\" or \"relu\", not {activation!r}')", "pass")

# %% key-error-for-value-error price=0.2
"""An unknown activation ends in a `KeyError` of your dictionary. Whoever calls you expects a `ValueError` that
says which names there are."""
replace("raise ValueError(", "raise KeyError(")

# %% dropout-missing
"""In training two calls give the same result whatever `dropout` is: the argument is never used. It acts on the
hidden layer, after the activation."""
replace("self.dropout(self.activation(self.fc1(x)))", "self.activation(self.fc1(x))")

# %% dropout-on-the-output
"""Your dropout zeroes entries of the output, bias and all. Inside the feed-forward layer it acts on the hidden
layer, after the activation; the one on the branch belongs to the block around it."""
replace("self.fc2(self.dropout(self.activation(self.fc1(x))))",
        "self.dropout(self.fc2(self.activation(self.fc1(x))))")

# %% dropout-before-the-activation
"""Your dropout comes before the activation. With a GELU that is not the same: the entries that are kept are
scaled up before they are bent, not after."""
replace("self.dropout(self.activation(self.fc1(x)))", "self.activation(self.dropout(self.fc1(x)))")

# %% dropout-never-ends
"""In evaluation mode your result still changes from call to call: `F.dropout` is on unless you tell it whether
the module is training."""
replace("self.dropout(self.activation(self.fc1(x)))", "F.dropout(self.activation(self.fc1(x)), self.dropout.p)")

# %% residual-inside
"""You add x to the result: the residual belongs to the block that contains this layer. With both it would be
added twice."""
replace("return self.fc2(", "return x + self.fc2(")

# %% refused-only-when-called price=0.2
"""An unknown activation is refused only when the module is called. Look at the name in `__init__`: the error belongs
where the module is made."""
replace('if activation not in ("gelu", "relu"):', "self.name = activation")
replace("            raise ValueError(f'activation is \"gelu\" or \"relu\", not {activation!r}')", "")
replace("return self.fc2(", """if self.name not in ("gelu", "relu"):
            raise ValueError(f"unknown activation {self.name!r}")
        return self.fc2(""")

# %% capitals-accepted price=0.1
"""The name "GELU" is taken for "gelu". There are two names, written as they are; anything else raises a
`ValueError`."""
replace("super().__init__()", """super().__init__()
        activation = activation.lower()""")

# %% relu-by-default price=0.2
"""Without the argument `activation` you use the ReLU; the default is "gelu"."""
replace('activation: str = "gelu"', 'activation: str = "relu"')

# %% dropout-on-the-input
"""Your dropout acts on what goes into fc1. It comes after the activation, on the hidden layer."""
replace("self.dropout(self.activation(self.fc1(x)))", "self.activation(self.fc1(self.dropout(x)))")

# %% one-draw-for-a-token
"""All hidden units of a token are dropped or kept together. Dropout draws for every unit on its own."""
replace("return self.fc2(self.dropout(self.activation(self.fc1(x))))", """hidden = self.activation(self.fc1(x))
        return self.fc2(hidden * self.dropout(torch.ones_like(hidden[..., :1])))""")

# %% arguments-in-another-order price=0.2
"""`FeedForward(d_model, d_ff, "relu")` fails: your third argument is dropout. The order is d_model, d_ff, activation,
dropout."""
replace('activation: str = "gelu", dropout: float = 0.0', 'dropout: float = 0.0, activation: str = "gelu"')
