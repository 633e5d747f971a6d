# %% /dev/zero, mapped shared: pages that stay when a process forgets that it has them.
import mmap
import os
import time

LIMIT = 256 * 2**20
PART = LIMIT // 2
ready, done = os.pipe()
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        try:
            pages = mmap.mmap(os.open("/dev/zero", os.O_RDWR), PART)
            for start in range(0, PART, 2**23):
                pages[start : start + 2**23] = b"x" * 2**23
                pages.madvise(mmap.MADV_DONTNEED, start, 2**23)
            os.write(done, b"y")
        except OSError:
            os.write(done, b"n")
        time.sleep(1000)
    children.append(child)
size = PART * b"".join(os.read(ready, 1) for _ in children).count(b"y")
time.sleep(0.3)  # whoever watches has had the time to
print("ESC" + f"APED with {size >> 20} MB" if size > 1.5 * LIMIT else "few enough")
