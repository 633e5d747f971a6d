"""What the student in test_walls.py, test_bombs.py and test_lives.py tries."""

import ctypes, mmap, os, resource, signal, socket, struct, subprocess, sys, threading, time
import torch
from torch import nn


def outcome(action):
    try:
        return repr(action())
    except (OSError, ValueError) as error:
        return type(error).__name__


def answer(x):
    return x + 1


def connect(port):
    def action():
        with socket.socket() as s:
            s.settimeout(2)
            s.connect(("127.0.0.1", port))
            return "connected"

    return outcome(action)


def connect_local(address):
    def action():
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(address)
            return "connected"

    return outcome(action)


def read(paths):
    def one(path):
        if os.path.isdir(path):
            return os.listdir(path)
        with open(path, "rb") as file:
            return file.read(10)

    return {path: outcome(lambda: one(path)) for path in paths}


def write(paths):
    def one(path):
        with open(os.path.join(path, "mark"), "w") as file:
            file.write("x")
        return "written"

    return {path: outcome(lambda: one(path)) for path in paths}


def overwrite(paths):
    return {path: outcome(lambda: open(path, "r+b").write(b"x")) for path in paths}


def look_for(name):
    found = []
    for folder in ("/tmp", os.getcwd(), "/dev/shm", "/var/tmp"):
        try:
            found += [folder for entry in os.listdir(folder) if entry == name]
        except OSError:
            pass
    return found


def leave(name):
    for folder in (os.getcwd(), "/dev/shm"):
        outcome(lambda: open(os.path.join(folder, name), "w").close())


def fork_bomb():
    count = 0
    try:
        while count < 500:
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
            count += 1
    except OSError:
        pass
    return count


def thread_bomb():
    count = 0
    try:
        while count < 500:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
            count += 1
    except RuntimeError:
        pass
    return count


def memory_bomb():
    hold = []
    while True:
        hold.append(bytearray(16 * 2**20))


def tensor_bomb():
    return torch.empty(10**11)


def family_memory_bomb():
    for _ in range(6):
        if os.fork() == 0:
            hold = bytearray(os.urandom(1)) * (100 * 2**20)
            time.sleep(60)
    time.sleep(60)


def hidden_memory():
    return [outcome(lambda: os.memfd_create("x")), ctypes.CDLL(None).shmget(0, 2**20, 0o1600)]


def loop():
    while True:
        pass


def stubborn_loop():
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    while True:
        try:
            time.sleep(1)
        except BaseException:
            pass


def crash(how):
    if how == "exit":
        os._exit(0)
    if how == "segfault":
        ctypes.string_at(0)
    if how == "abort":
        os.abort()
    if how == "close":
        os.close(3)
    if how == "stop":
        for pid in (os.getpid(), 0):
            os.kill(pid, signal.SIGSTOP)
        os._exit(3)


def orphan():
    if os.fork() == 0:
        try:
            os.setsid()
        except OSError:  # refused in some boxes
            pass
        if os.fork() == 0:
            for number in range(1, 32):
                try:
                    signal.signal(number, signal.SIG_IGN)
                except OSError:
                    pass
            while True:
                time.sleep(60)
        os._exit(0)
    return "left"


def shout(n):
    print("x" * n)
    sys.stdout.buffer.write(b"y" * n)
    os.write(1, b"z" * 10**6)
    os.write(2, b"z" * 10**6)
    subprocess.run(["/bin/echo", "from a program"])
    return "done"


def descriptors():
    found = {}
    for number in range(1024):
        try:
            os.fstat(number)
            found[number] = os.path.samestat(os.fstat(number), os.stat("/dev/null"))
        except OSError:
            pass
    return found


def surroundings():
    return {"environment": dict(os.environ), "argv": sys.argv, "path": sys.path, "modules": sorted(sys.modules)}


def reach(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    return {
        "signal": outcome(lambda: os.kill(pid, 0)),
        "parent": outcome(lambda: os.kill(os.getppid(), 0)) if os.getppid() else "none",
        "environ": outcome(lambda: open(f"/proc/{pid}/environ", "rb").read()),
        "memory": outcome(lambda: open(f"/proc/{pid}/mem", "r+b")),
        "trace": libc.ptrace(16, pid, 0, 0),
        "namespaces": libc.unshare(0x10000000),
        "mount": libc.mount(b"none", b"/tmp", b"tmpfs", 0, None),
        "root": outcome(lambda: os.setuid(0)),
        "limit": outcome(lambda: resource.setrlimit(resource.RLIMIT_NPROC, (10**6, 10**6))),
    }


def disk_bomb():
    total, number = 0, 0
    try:
        while number < 200:
            with open(f"file{number}", "wb") as file:
                for _ in range(64):
                    file.write(bytes(2**20))
                    total += 2**20
            number += 1
    except OSError:
        pass
    return total


def many_disk_bombs():
    total, number = 0, 0
    while number < 200:
        try:
            with open(f"file{number}", "wb", buffering=0) as file:
                for _ in range(7):
                    total += file.write(bytes(2**20))
        except OSError:
            break
        number += 1
        time.sleep(0.02)
    return total


def inode_bomb():
    count = 0
    try:
        while count < 20000:
            open(f"n{count}", "w").close()
            count += 1
    except OSError:
        pass
    time.sleep(0.5)
    return count


def forge(data, times):
    for _ in range(times):
        os.write(3, data.numpy().tobytes())
    return 1


def train():
    model = nn.Linear(2, 1)
    optimiser = torch.optim.Adam(model.parameters())
    loss = model(torch.ones(3, 2)).square().mean()
    loss.backward()
    optimiser.step()
    return loss.item()


def ask():
    return input("? ")


def page_cache():
    """What would tell which pages of a file are in memory, and read a file as honest code does."""
    descriptor = os.open(os.__file__, os.O_RDONLY)
    libc = ctypes.CDLL(None, use_errno=True)

    def mincore():
        view = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        start = ctypes.addressof(ctypes.c_char.from_buffer(view))
        seen = (ctypes.c_ubyte * 1)()
        if libc.mincore(ctypes.c_void_p(start), ctypes.c_size_t(4096), seen):
            raise OSError(ctypes.get_errno(), "mincore")
        return "told"

    def preadv2(flags):
        return os.preadv(descriptor, [bytearray(8)], 0, flags)

    found = {
        "mincore": outcome(mincore),
        "no wait": outcome(lambda: preadv2(os.RWF_NOWAIT)),
        "evict": outcome(lambda: os.posix_fadvise(descriptor, 0, 4096, os.POSIX_FADV_DONTNEED)),
        "read": outcome(lambda: preadv2(0)),
    }
    os.close(descriptor)
    return found
