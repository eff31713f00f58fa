# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The programs that tests/bench/accuracy records, their faults, and who is at fault."""
import dataclasses
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
O = os.path.abspath(os.environ.get("O", os.path.join(ROOT, "build")))
TRACECTL = os.path.join(O, "tracectl")
PROGRAMS = os.path.join(O, "tests/programs")
REQUESTS = 61  # to the server
HANG_SECONDS = 6  # for a program that does not end its hang by itself


@dataclasses.dataclass
class Fault:
    program: str
    bug: str  # the program's argument
    filter: list  # diff's options
    threads: list = dataclasses.field(default_factory=list)  # at fault
    query: str = ""  # the same where it is known from the recording RUN only


MEMORY = ["--filter", "11.mem.ompcrit.cust.0K10", "--custom", "^CPU_Exec$"]  # table 3.5 of the dissertation
MPI_AND_OWN = ["--filter", "11.mpi.cust.0K10", "--custom", "^CPU_Exec$"]  # tables 3.6 and 3.7
WORKERS = [f"{rank}.{worker}" for rank in range(8) for worker in range(1, 5)]
WAITING = "SELECT DISTINCT thread FROM open_calls WHERE run_id = RUN AND name LIKE 'pthread_cond_wait%'"

FAULTS = [
    Fault("odd_even_sort", "swap", ["--filter", "mpi"], ["5.0"]),
    Fault("odd_even_sort", "deadlock", ["--filter", "mpi"], ["5.0"]),
    Fault("ilcs_tsp", "no-critical", MEMORY, ["6.4"]),
    Fault("ilcs_tsp", "no-critical all all", MEMORY, WORKERS),
    Fault("ilcs_tsp", "wrong-size", MPI_AND_OWN, ["2.0"]),
    Fault("ilcs_tsp", "wrong-op", MPI_AND_OWN, ["0.0"]),
    Fault("ilcs_tsp", "endless", MEMORY, ["3.2"]),
    Fault("leap_frog", "skip", ["--filter", "mpi", "--custom", "^Lagrange"], ["2.0"]),
    Fault("work_server", "no-unlock", ["--filter", "pthread"], ["0.3"]),
    Fault("work_server", "one-wakeup", ["--filter", "pthread"], query=WAITING),
    Fault("release", "2", [], ["0.0"]),
]
RANKS = {"odd_even_sort": 16, "ilcs_tsp": 8, "leap_frog": 8}


def command_of(program, bug):
    if program == "release":
        return [os.path.join(PROGRAMS, "release_2" if bug == "2" else "release_1")]
    command = ["mpiexec", "-n", str(RANKS[program]), os.path.join(PROGRAMS, program), *bug.split()]
    return ["timeout", str(HANG_SECONDS), *command] if bug == "deadlock" else command


def record(store, name, program, bug):
    environment = os.environ | {"OMP_WAIT_POLICY": "passive"}
    recorder = [TRACECTL, "-q", "-d", store, "record", "-n", name, "--returns", "probe", "--"]
    quiet = {"env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    if program != "work_server":
        done = subprocess.run(recorder + command_of(program, bug), check=False, **quiet)
        if done.returncode:
            sys.exit(f"accuracy: recording {name}: {done.stderr}")
        return
    with tempfile.TemporaryDirectory() as directory:
        address = os.path.join(directory, "socket")
        with subprocess.Popen([*recorder, os.path.join(PROGRAMS, program), address, bug], **quiet) as server:
            patience = "60" if bug == "normal" else "3"
            subprocess.run([os.path.join(ROOT, "tests/e2e/ask_server"), address, str(REQUESTS), patience], check=True,
                           stdout=subprocess.DEVNULL)
            _, complaint = server.communicate()
        if server.returncode:
            sys.exit(f"accuracy: recording {name}: {complaint}")
