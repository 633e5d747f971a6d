# %% Headers that promise too much, and replies that come a byte at a time.
import os
import sys
import time

import torch

from autograder.box import protocol


def header():
    frame = sys._getframe()
    while "header" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals["header"]


def row_weights(scores, blocked=None):
    asked = header()
    os.write(3, protocol.HEADER.pack(b"BOX1", asked.nonce, asked.sequence, 2**32 - 1, 2**63))
    time.sleep(1000)


class Gate(torch.nn.Module):
    def __init__(self, dim):
        asked = header()
        os.write(3, protocol.HEADER.pack(b"BOX1", asked.nonce, asked.sequence, 2 * 2**20, 64 * 2**20))
        while True:
            os.write(3, b"\0")
            time.sleep(0.01)


def make_kernel(width):
    asked = header()
    tree = b"\xdd\xff\xff\xff\xff" + b"\xc0" * 100  # an array of 2**32 - 1 items
    os.write(3, protocol.HEADER.pack(b"BOX1", asked.nonce, asked.sequence, len(tree), 0) + tree)
    time.sleep(1000)


def describe(values):
    asked = header()
    shape = b"\x03" + (2**31).to_bytes(8, "little") * 3
    tree = b"\x93\x02\xa5value\xc7" + bytes([len(shape)]) + b"\x01" + shape
    os.write(3, protocol.HEADER.pack(b"BOX1", asked.nonce, asked.sequence, len(tree), 0) + tree)
    time.sleep(1000)
