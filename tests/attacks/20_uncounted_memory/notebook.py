# %% Memory in places that no process is charged for; each cell stops when it has twice what the box may have.
import ctypes
import mmap
import os
import socket
import time

LIMIT = 256 * 2**20
PART = LIMIT // 2


def share(fill):
    """Let four children fill a part each and stay; how much they have together."""
    ready, done = os.pipe()
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            held = []
            os.write(done, b"%012d" % fill(held))
            time.sleep(1000)
        children.append(child)
    total = sum(int(os.read(ready, 12)) for _ in children)
    time.sleep(0.3)  # whoever watches has had the time to
    for child in children:
        os.kill(child, 9)
        os.waitpid(child, 0)
    return total


def tell(what, size):
    print(f"{what}:", "ESC" + f"APED with {size >> 20} MB" if size > 1.5 * LIMIT else "few enough")


def in_sockets(held):
    total = 0
    try:
        while total < PART:
            ours, theirs = socket.socketpair()
            held.append((ours, theirs))
            ours.setblocking(False)
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**24)
            try:
                while total < PART:
                    total += ours.send(bytes(65536))
            except BlockingIOError:
                pass
    except OSError:
        pass
    return total


tell("in sockets", share(in_sockets))


# %% Pages of a shared mapping stay when a process forgets that it has them.
def in_shared_pages(held):
    try:
        pages = mmap.mmap(-1, PART)
        held.append(pages)
        for start in range(0, PART, 2**23):
            pages[start : start + 2**23] = b"x" * 2**23
            pages.madvise(mmap.MADV_DONTNEED, start, 2**23)
        return PART
    except OSError:
        return 0


tell("in shared pages", share(in_shared_pages))


# %% A pipe that holds one byte of a huge page holds the page.
def in_pipes(held):
    libc, total = ctypes.CDLL(None), 0
    try:
        while total < PART:
            if total % (16 * 2**21) == 0:
                held.append(os.pipe())
            region = mmap.mmap(-1, 2**22, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            region.madvise(14)  # MADV_HUGEPAGE
            address = ctypes.addressof(ctypes.c_char.from_buffer(region))
            address += -address % 2**21
            ctypes.memset(address, 1, 4096)
            if libc.vmsplice(held[-1][1], (ctypes.c_size_t * 2)(address, 1), ctypes.c_size_t(1), 0) != 1:
                break
            total += 2**21
    except (OSError, ValueError):
        pass
    return total


tell("in pipes", share(in_pipes))
