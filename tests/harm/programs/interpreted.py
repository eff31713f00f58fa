# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""For the Python interpreter: deep recursion, exceptions, generators, threads, children, signals."""
import os
import signal
import subprocess
import sys
import threading

sys.setrecursionlimit(5000)


def descend(n):
    return 0 if n == 0 else descend(n - 1) + 1


def throw(n):
    if n == 0:
        raise ValueError("bottom")
    throw(n - 1)


def caught(n):
    try:
        throw(n)
    except ValueError as error:
        return len(str(error))


def produce(n):
    for i in range(n):
        yield i


results = []
threads = [threading.Thread(target=lambda n=n: results.append(descend(100 * n))) for n in range(5)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
handled = []
signal.signal(signal.SIGUSR1, lambda *_: handled.append(1))
for _ in range(10):
    os.kill(os.getpid(), signal.SIGUSR1)
output = subprocess.run(["/bin/echo", "child"], capture_output=True, text=True, check=True).stdout.strip()
print(descend(1000), caught(50), sum(produce(100)), sorted(results), len(handled), output)
