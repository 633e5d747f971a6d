"""The header of a percent file is YAML: a few lines that unfold to ten to the ninth."""


def make(kit):
    lines = ["# ---", "# jupyter:", "#   a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"#   a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    return "\n".join([*lines, "# ---", "", "# %%", "x = 1", ""]).encode() + kit.percent("", list(kit.answers))
