# %% Reach for the judge: its memory, descriptors, files, priority and signals; and for a way to become somebody.
import ctypes
import fcntl
import os
import resource
import signal

JUDGE = int("@JUDGE@")
libc = ctypes.CDLL(None, use_errno=True)
done = []


def attempt(what, action):
    try:
        value = action()
        if value != -1 and value is not False:
            done.append(f"{what}: {value!r}")
    except (OSError, ValueError, OverflowError):
        pass


pids = sorted({JUDGE, os.getppid() or JUDGE, *range(2, 40)} - {os.getpid(), 0, 1})
for pid in pids:
    attempt(f"signal {pid}", lambda: os.kill(pid, 0))
    attempt(f"trace {pid}", lambda: libc.ptrace(16, pid, 0, 0))
    attempt(f"limit {pid}", lambda: resource.prlimit(pid, resource.RLIMIT_CPU))
    attempt(f"priority {pid}", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
    attempt(f"pidfd {pid}", lambda: os.pidfd_open(pid))
    for file in ("mem", "maps", "environ", "fd", "root", "cwd", "stack", "oom_score_adj"):
        path = f"/proc/{pid}/{file}"
        attempt(path, lambda: os.listdir(path) if os.path.isdir(path) else open(path, "r+b").read(1))
attempt("all signals", lambda: os.kill(-1, 0))
for number in range(0, 64):
    if number == 3:
        continue
    try:
        target = os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        continue
    if target != "/dev/null" and not target.startswith(("/proc", "/tmp", "pipe", "socket:")):
        done.append(f"descriptor {number} is {target}")
for what, action in {
    "root": lambda: os.setuid(0),
    "groups": lambda: os.setgroups([0]),
    "root's group": lambda: os.setresgid(0, 0, 0),
    "chroot": lambda: os.chroot("/tmp"),
    "unshare": lambda: libc.unshare(0x10000000),
    "unshare all": lambda: libc.unshare(0x7E020000),
    "mount": lambda: libc.mount(b"none", b"/tmp", b"tmpfs", 0, None),
    "umount": lambda: libc.umount2(b"/proc", 2),
    "remount": lambda: libc.mount(b"none", b"/", None, 32 | 4096, None),
    "bpf": lambda: libc.syscall(321, 0, 0, 0),
    "perf": lambda: libc.syscall(298, 0, 0, -1, -1, 0),
    "io_uring": lambda: libc.syscall(425, 1, 0),
    "userfaultfd": lambda: libc.syscall(323, 0),
    "keys": lambda: libc.syscall(250, 0, -3, 0),
    "modules": lambda: libc.syscall(313, 0, b"", 0),
    "handles": lambda: libc.syscall(304, -100, b"", 0),
    "clone into a user namespace": lambda: libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0),
    "clone3": lambda: libc.syscall(435, b"\0\0\0\x10" + bytes(84), 88),
    "memory limit": lambda: resource.setrlimit(resource.RLIMIT_AS, (-1, -1)),
    "process limit": lambda: resource.setrlimit(resource.RLIMIT_NPROC, (-1, -1)),
    "cpu limit": lambda: resource.setrlimit(resource.RLIMIT_CPU, (10**6, 10**6)),
    "file limit": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1)),
    "realtime": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
    "negative nice": lambda: os.setpriority(os.PRIO_PROCESS, 0, -5),
    "clock": lambda: __import__("time").clock_settime(0, 0),
    "host name": lambda: libc.sethostname(b"mine", 4),
    "core pattern": lambda: open("/proc/sys/kernel/core_pattern", "w").write("|/bin/sh"),
    "tty": lambda: fcntl.ioctl(0, 0x5412, b"x"),
    "dev mem": lambda: os.open("/dev/mem", os.O_RDONLY),
    "fuse": lambda: os.open("/dev/fuse", os.O_RDWR),
    "kvm": lambda: os.open("/dev/kvm", os.O_RDWR),
    "node": lambda: os.mknod("/tmp/disk", 0o60666, os.makedev(8, 0)),
    "suid": lambda: os.system("su -c id >/dev/null 2>&1 || sudo -n id >/dev/null 2>&1 || mount -t tmpfs x /tmp 2>/dev/null") != 0 and -1,
}.items():
    attempt(what, action)
print("tried", "ESC" + "APED: " + str(done) if done else "to reach out")


# %%
def row_weights(scores, blocked=None):
    return scores
