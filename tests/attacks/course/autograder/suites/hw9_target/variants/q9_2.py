# %% exponential
"""The sigmoid written out."""
class Gate(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = nn.Linear(dim, dim)

    def forward(self, x):
        return x / (1 + torch.exp(-self.linear(x)))

# %% method
"""The sigmoid as a method."""
class Gate(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = nn.Linear(dim, dim)

    def forward(self, x):
        return self.linear(x).sigmoid() * x

# %% functional
"""Through torch.nn.functional."""
class Gate(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = nn.Linear(dim, dim)

    def forward(self, x):
        y = nn.functional.linear(x, self.linear.weight, self.linear.bias)
        return torch.mul(x, nn.functional.sigmoid(y))
