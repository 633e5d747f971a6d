# %% Threads without end.
import threading
import time

count = 0
try:
    while count < 1000:
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        count += 1
except RuntimeError:
    pass
print("few enough" if count <= 16 else "ESC" + f"APED: {count} threads")
