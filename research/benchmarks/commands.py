"""CPU seconds of starting up, and of the commands that only read a state file.

    python research/benchmarks/commands.py [STATE.vf]

Without a file, six views of handwritten digits are folded, as `viewfold demo` does. Every command
runs in a process of its own, in turns; the best of some times counts, since a busy machine only
adds to it. Commands are compared with loading the model, starting up with Python that does nothing;
on an idle machine, ``import viewfold`` is to take 0.1 s at most and ``viewfold --help`` 0.3 s.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

COMMANDS = {
    "status": "status {0}",
    "labels": "labels {0}",
    "labels -o .csv": "labels {0} -o labels.csv",
    "history": "history {0}",
    "history --id": "history {0} --id d0005",
    "export -o .csv": "export {0} -o all.csv",
    "export -o .parquet": "export {0} -o all.parquet",
}
STARTING = {
    "python -c pass": ["-c", "pass"],
    "import viewfold": ["-c", "import viewfold"],
    "viewfold --help": ["-m", "viewfold", "--help"],
    "viewfold add --help": ["-m", "viewfold", "add", "--help"],
    "viewfold --version": ["-m", "viewfold", "--version"],
    "import ViewFold": ["-c", "from viewfold import ViewFold"],
}
LOAD = "import sys, viewfold; viewfold.load(sys.argv[1])"


def cpu_seconds(asked: list[str], folder: str) -> float:
    """Return the CPU time of a process, user and system, from its start to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(asked, cwd=folder, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("state", nargs="?", type=Path)
    parser.add_argument("--times", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="viewfold-") as folder:
        command = [sys.executable, "-m", "viewfold"]
        state = asked.state and asked.state.resolve()
        if state is None:
            cpu_seconds([*command, "demo", folder], folder)
            state = Path(folder) / "demo.vf"
        jobs = {name: [*command, *line.format(state).split()] for name, line in COMMANDS.items()}
        jobs["viewfold.load"] = [sys.executable, "-c", LOAD, str(state)]
        jobs |= {name: [sys.executable, *words] for name, words in STARTING.items()}
        taken: dict[str, list[float]] = {name: [] for name in jobs}
        for _ in range(asked.times):
            for name, job in jobs.items():
                taken[name].append(cpu_seconds(job, folder))
        load, nothing = min(taken["viewfold.load"]), min(taken["python -c pass"])
        print(f"{state.name}, {state.stat().st_size / 1e6:.1f} MB; best of {asked.times}")
        for name, seconds in taken.items():
            yardstick, called = (nothing, "pass") if name in STARTING else (load, "load")
            ratio = min(seconds) / yardstick
            print(f"{name:20} {min(seconds):5.2f} s CPU, {ratio:.2f} x {called}")


if __name__ == "__main__":
    main()
