"""The same header where a pattern may not look for it: below a line for editors, with other ends of lines."""


def make(kit):
    lines = ["# ---", "# jupyter:", "#   a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"#   a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    header = "\r".join(["# vim: set fileencoding=utf-8 :", *lines, "# ---", "", ""])
    return header.encode() + kit.percent("# %%\nx = 1", list(kit.answers))
