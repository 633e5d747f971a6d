# %% positions-from-one price=0.2
"""Your first row is PE(1): positions are counted from 0, and the first row is 0, 1, 0, 1, ..."""
replace("torch.arange(n, dtype=torch.float64)", "torch.arange(1, n + 1, dtype=torch.float64)")

# %% sine-half-then-cosine-half
"""The values are right and the columns are not: you put all sines first and all cosines behind them. Here they
take turns, sine in even and cosine in odd columns."""
replace("torch.stack([angles.sin(), angles.cos()], dim=-1)", "torch.cat([angles.sin(), angles.cos()], dim=1)")

# %% cosine-in-even-columns price=0.3
"""Sine and cosine have changed places: your first column is all ones at position 0, and it should be zero.
Even columns (0, 2, ...) have the sine."""
replace("[angles.sin(), angles.cos()]", "[angles.cos(), angles.sin()]")

# %% each-column-its-own-frequency
"""A sine and its cosine have different frequencies in your table: you use the column's own number as exponent.
Columns 2i and 2i + 1 are a pair and share the exponent 2i / d; without that no rotation carries PE(t) to
PE(t + 1)."""
replace("(-torch.arange(0, d, 2, dtype=torch.float64) / d)  # [ceil(d / 2)]",
        "(-torch.arange(d, dtype=torch.float64) / d)")
replace("torch.stack([angles.sin(), angles.cos()], dim=-1)",
        "torch.where(torch.arange(d) % 2 == 0, angles.sin(), angles.cos())")

# %% exponent-too-small
"""Your frequencies fall off too slowly: the exponent of pair i is 2i / d, and you have i / d."""
replace("(-torch.arange(0, d, 2, dtype=torch.float64) / d)  # [ceil(d / 2)]",
        "(-torch.arange(0, d, 2, dtype=torch.float64) / (2 * d))")

# %% exponent-doubled
"""Your frequencies fall off too fast: 0, 2, 4, ... are the numbers 2i already, and you double them once
more."""
replace("(-torch.arange(0, d, 2, dtype=torch.float64) / d)  # [ceil(d / 2)]",
        "(-2 * torch.arange(0, d, 2, dtype=torch.float64) / d)")

# %% frequencies-end-at-the-base
"""Your slowest pair turns at exactly 1 / 10000: you divide the exponent by the number of pairs less one, as
some libraries do. Here pair i has exponent 2i / d."""
replace("(-torch.arange(0, d, 2, dtype=torch.float64) / d)  # [ceil(d / 2)]",
        "(-torch.arange((d + 1) // 2, dtype=torch.float64) / max((d + 1) // 2 - 1, 1))")

# %% frequencies-grow
"""Your frequencies grow from pair to pair: the position is divided by the power of 10000, not multiplied by
it."""
replace("(-torch.arange(0, d, 2, dtype=torch.float64) / d)  # [ceil(d / 2)]",
        "(torch.arange(0, d, 2, dtype=torch.float64) / d)")

# %% base-one-thousand price=0.2
"""All but the first pair of columns turn too fast: your base is 1000. It is 10000."""
replace("10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)  # [ceil(d / 2)]",
        "1000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)")

# %% odd-width-fails price=0.2
"""An odd d raises an error: there is one more sine column than cosine columns, and you assign as many cosines
as sines."""
def sinusoidal_encoding(n, d):
    position = torch.arange(n, dtype=torch.get_default_dtype())[:, None]
    frequency = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
    table = torch.zeros(n, d)
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    return table

# %% odd-width-drops-a-column price=0.2
"""For an odd d your table has one column too few: it ends with a sine that has no cosine beside it."""
replace("(-torch.arange(0, d, 2, dtype=torch.float64) / d)  # [ceil(d / 2)]",
        "(-torch.arange(0, d - 1, 2, dtype=torch.float64) / d)")

# %% odd-width-ends-with-zero price=0.2
"""For an odd d your last column is all zeros: it has a sine, of the next pair's frequency, and only its cosine
is left out."""
replace("pairs.flatten(1)[:, :d]", "pairs.flatten(1)[:, :d].masked_fill(torch.arange(d) == d // 2 * 2, 0.0)")

# %% shift-transposed price=0.3
"""Your matrix turns the wrong way: it takes PE(t) to PE(t - offset). Write down sin(a + b) and cos(a + b) and
read off where the minus sign stands; or you applied it from the right."""
replace("[cos, sin, -sin, cos]", "[cos, -sin, sin, cos]")

# %% shift-without-minus
"""Your matrix is no rotation: both sines have the same sign. cos(a + b) = cos a cos b - sin a sin b."""
replace("[cos, sin, -sin, cos]", "[cos, sin, sin, cos]")

# %% shift-one-frequency-for-all
"""Only the first pair of columns is right: you turn every pair by the same angle. Pair i turns by offset times
its own frequency."""
replace("omega = 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)  # [d / 2]",
        "omega = torch.ones(d // 2, dtype=torch.float64)")

# %% shift-for-halves
"""Your matrix fits a table with all sines first: the blocks that turn are columns i and i + d/2. Here a sine
and its cosine are neighbours."""
replace("""blocks = torch.stack([cos, sin, -sin, cos], dim=-1).reshape(-1, 2, 2)  # [d / 2, 2, 2]
    return torch.block_diag(*blocks)""",
        """C, S = torch.diag(cos), torch.diag(sin)
    return torch.cat([torch.cat([C, S], 1), torch.cat([-S, C], 1)])""")

# %% shift-right-at-one-position-only
"""Your matrix takes PE(0) where it should go and fails for other t: you built it from one pair of positions.
It has to be the same for every t."""
def shift_matrix(offset, d):
    angle = offset / 10000 ** ((torch.arange(d) // 2 * 2).double() / d)
    there = torch.where(torch.arange(d) % 2 == 0, angle.sin(), angle.cos())
    here = (torch.arange(d) % 2).double()
    return (torch.outer(there, here) / (here @ here)).to(torch.get_default_dtype())

# %% always-float32 price=0.2
"""Your results are float32 whatever the default dtype is: cast to `torch.get_default_dtype()` when the function is
called."""
replace("pairs.flatten(1)[:, :d].to(torch.get_default_dtype())", "pairs.flatten(1)[:, :d].float()")
replace("torch.block_diag(*blocks).to(torch.get_default_dtype())", "torch.block_diag(*blocks).float()")

# %% shift-fitted price=0.3
"""Your matrix is fitted to some places. In a wide table the slow pairs hardly turn, and the fit does not find them:
work the matrix out from the frequencies."""
def shift_matrix(offset, d):
    rate = 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)

    def rows(t):
        angle = t.double()[:, None] * rate
        return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)

    t = torch.arange(512)
    return torch.linalg.lstsq(rows(t), rows(t + offset)).solution.T.to(torch.get_default_dtype())

# %% sign-of-offset-lost price=0.2
"""A step of -2 gives the same matrix as one of 2: the sign of the offset is lost. The formula takes negative offsets as
they are."""
replace("torch.cos(omega * offset), torch.sin(omega * offset)",
        "torch.cos(omega * offset), torch.sin(omega * abs(offset))")

# %% odd-width-rounded-up price=0.2
"""For an odd d your frequencies are those of d + 1. The formula is the same for odd widths, with that odd d."""
replace("(-torch.arange(0, d, 2, dtype=torch.float64) / d)  # [ceil(d / 2)]",
        "(-torch.arange(0, d, 2, dtype=torch.float64) / (d + d % 2))")

# %% angles-in-float32 price=0.1
"""While the default dtype is float64 your table has seven digits only: the angles are made in float32 on the way.
Make them in float64 and cast at the end."""
replace("(-torch.arange(0, d, 2, dtype=torch.float64) / d)  # [ceil(d / 2)]", "(-torch.arange(0, d, 2).float() / d)")
replace("torch.arange(n, dtype=torch.float64)[:, None]", "torch.arange(n).float()[:, None]")

# %% always-float64 price=0.2
"""Your results are float64 whatever the default dtype is: cast to `torch.get_default_dtype()` at the end."""
replace("pairs.flatten(1)[:, :d].to(torch.get_default_dtype())", "pairs.flatten(1)[:, :d]")
replace("torch.block_diag(*blocks).to(torch.get_default_dtype())", "torch.block_diag(*blocks)")
