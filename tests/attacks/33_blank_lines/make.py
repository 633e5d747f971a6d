"""A percent file that begins with a hundred thousand blank lines."""


def make(kit):
    return b"\n" * 100_000 + b"x = 1\n" + kit.percent("# %%\n", list(kit.answers))
