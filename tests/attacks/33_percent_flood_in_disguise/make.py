"""Marks of cells as other editors write them."""


def make(kit):
    marks = b"#%%\n" * 20_000 + b"  # %%\n" * 20_000 + b"# In[1]:\n" * 10_000 + b"# <codecell>\n" * 10_000
    return marks + kit.percent("# %%\n", list(kit.answers))
