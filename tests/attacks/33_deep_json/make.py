"""JSON nested beyond any stack."""


def make(kit):
    return b'{"cells": ' + b"[" * 10**6 + b"]" * 10**6 + b"}"
