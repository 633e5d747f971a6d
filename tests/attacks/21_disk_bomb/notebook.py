# %% Fill the disk with bytes, then with names.
import os

total = count = 0
for folder in {os.path.realpath(folder) for folder in (".", "/tmp", "/dev/shm", "/var/tmp", "~")}:
    for number in range(100):
        try:
            with open(f"{folder}/bomb{number}", "wb", buffering=0) as file:
                for _ in range(16):
                    total += file.write(bytes(2**20))
        except OSError:
            pass
print("bytes are few" if total <= 40 * 2**20 else "ESC" + f"APED: {total} bytes")
for number in range(100):
    try:
        os.truncate(f"bomb{number}", 0)
    except OSError:
        pass
try:
    while count < 50000:
        open(f"n{count}", "w").close()
        count += 1
except OSError:
    pass
print("names are few" if count <= 5000 else "ESC" + f"APED: {count} files")
