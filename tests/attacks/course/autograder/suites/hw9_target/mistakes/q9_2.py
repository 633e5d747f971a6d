# %% no-product
"""The gate's opening comes back without x."""
class Gate(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = nn.Linear(dim, dim)

    def forward(self, x):
        return torch.sigmoid(self.linear(x))

# %% tanh
"""tanh where a sigmoid was asked for."""
class Gate(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = nn.Linear(dim, dim)

    def forward(self, x):
        return x * torch.tanh(self.linear(x))

# %% no-squash
"""The gate is never squashed into 0 to 1."""
class Gate(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = nn.Linear(dim, dim)

    def forward(self, x):
        return x * self.linear(x)

# %% gate-of-the-product
"""The sigmoid comes before the product, not after it."""
class Gate(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = nn.Linear(dim, dim)

    def forward(self, x):
        return torch.sigmoid(x * self.linear(x))
