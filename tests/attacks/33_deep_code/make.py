"""Code whose tree is deeper than any stack, in cells of their own: the judge reads them to find names."""


def make(kit):
    deep = ["-" * 10**5 + "1", "a" + ".b" * 10**5, "a" + "()" * 10**5, "1" + "+1" * 10**5, "[" * 10**5, "not " * 10**5 + "a"]
    deep += ["lambda: " * 10**4 + "1", "x" + "[0]" * 10**5, "f'" + "{f'" * 100, "a if b else " * 10**5 + "c", "(" * 150 + ")" * 150]
    deep += ["if a: pass\n" + "elif a: pass\n" * 10**4, "\n".join(" " * i + "if a:" for i in range(200)), "a" * 10**6, "'" * 10**6]
    deep += ["x = 1\\\n" * 10**4, "%" * 10**5, "?" * 10**5, "\x00", "\ufeffx = 1", "x = 1\x0c\n" * 1000, "# -*- coding: rot13 -*-"]
    return kit.notebook([kit.cell(source) for source in deep] + kit.cells())
