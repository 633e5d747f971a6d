# %% Close the channel, put something else in its place, pass descriptors through it.
import array
import os
import socket

import torch


def channel():
    return socket.socket(fileno=os.dup(3))


def row_weights(scores, blocked=None):
    os.close(3)
    while True:
        pass


class Gate(torch.nn.Module):
    def __init__(self, dim):
        channel().shutdown(socket.SHUT_RDWR)


def make_kernel(width):
    os.dup2(os.pipe()[0], 3)
    return lambda x, y: 1.0


def describe(values):
    fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(20)]
    for _ in range(20):
        channel().sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
    try:
        channel().send(b"!", socket.MSG_OOB)
    except OSError:
        pass
    return {"count": 1, "mean": 1.0, "trend": "?"}
