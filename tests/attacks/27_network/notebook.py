# %% Every way out.
import ctypes
import os
import socket
import subprocess
import sys
import urllib.request

out = []


def attempt(what, action):
    try:
        out.append(f"{what}: {action()!r}")
    except Exception:
        pass


for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK, socket.AF_PACKET):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
        attempt(f"socket {family} {kind}", lambda: socket.socket(family, kind))
attempt("judge", lambda: socket.create_connection(("127.0.0.1", int("@PORT@")), 2))
attempt("outside", lambda: socket.create_connection(("1.1.1.1", 53), 2))
attempt("name", lambda: socket.gethostbyname("example.org"))
attempt("web", lambda: urllib.request.urlopen("http://127.0.0.1:@PORT@/", timeout=2).read())
attempt("system call", lambda: [fd for fd in [ctypes.CDLL(None).syscall(41, 2, 1, 0)] if fd >= 0][0])
attempt("vsock", lambda: socket.socket(socket.AF_VSOCK))
code = "import socket; socket.create_connection(('127.0.0.1', @PORT@), 2); print('connected')"
attempt("child", lambda: subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
print("tried", "ESC" + "APED: " + str(out) if out else "every way out")
