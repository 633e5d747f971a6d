"""Several things that are no notebook at all; each must be refused in a sentence."""


def make(kit):
    return b"\x89PNG\r\n\x1a\n\x00\xff" * 1000
