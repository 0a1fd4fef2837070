"""A kernel that is compiled and launched in a spawned worker."""

import multiprocessing
import runpy
import sys
from pathlib import Path


def work() -> None:
    sys.argv = ["kernels.py", "softmax"]
    runpy.run_path(str(Path(__file__).with_name("kernels.py")), run_name="kernels")


if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=work)
    process.start()
    process.join()
    sys.exit(process.exitcode)
