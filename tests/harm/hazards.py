# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Cases of the harm matrix that are situations, not programs: where a target comes from, and what else holds it."""
import contextlib
import mmap
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import truth
from matrix import (HERE, LIMIT, TRACECTL, Case, Skip, check, ends_unharmed, is_probed, program, same, state_of, text_is_clean,
                    truth_of, wait_for)

CASES = []


def case(name, *arguments):
    """Makes a case of a function; with `arguments` when it is called with them."""

    def add(function):
        def run():
            with Case() as here:
                function(here, *arguments)

        CASES.append((name, run))
        return function

    return add


def copy(here, name, to):
    path = here.directory / to
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(program(name), path)
    return path


def libraries_of(path):
    listing = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(/\S+) \(0x", listing)


def tree_is_right(here, name, build, path):
    """The calls are those of the instrumented build of `name`; `path` is what the catalog calls the program `build`."""
    wanted = truth_of((program(name + ".instrumented"),))
    difference = truth.compare(wanted.streams, here.streams(wanted.known, {str(path): program(build)}), "tree")
    check(not difference, f"{difference}\nlosses: {here.losses()}")


def only_child(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return int(file.read())


# ------------------------------------------------------------------------------ where the program comes from


@case("in a chroot, static", "deep.static")
@case("in a chroot, dynamic", "deep")
def in_a_chroot(here, name):
    copy(here, name, "root/inside/target")
    for library in libraries_of(program(name)) if name == "deep" else []:
        target = here.directory / ("root" + library)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(library, target)
    status, out, _ = here.record("--", "chroot", here.directory / "root", "/inside/target")
    same("result", (0, "result 15000\n"), (status, out))
    images = [path for path, in here.query("SELECT path FROM images") if path.endswith("/inside/target")]
    same("images of the target", 1, len(images))
    tree_is_right(here, "deep", name, images[0])


@case("in a chroot, attached")
def in_a_chroot_attached(here):
    copy(here, "deep.static", "root/target")
    target = here.spawn_ready("chroot", here.directory / "root", "/target", "loop")
    here.record("--budget", "none", "-p", target.pid, "--duration", "0.2")
    check(here.value("SELECT count(*) FROM events") > 0, "nothing was recorded")
    text_is_clean(target.pid)
    ends_unharmed(target)


@case("replaced on disk while running", "replaced")
@case("deleted while running", "deleted")
def replaced(here, how):
    path = copy(here, "deep", "target")
    target = here.spawn_ready(path, "loop")
    if how == "replaced":
        os.replace(copy(here, "sorting", "new"), path)
    else:
        path.unlink()
    here.record("--budget", "none", "-p", target.pid, "--duration", "0.3")
    names = {name for name, in here.query("SELECT DISTINCT name FROM call_counts")}
    check("descend" in names and "compare" not in names, f"functions of another file: {sorted(names)}")
    text_is_clean(target.pid)
    ends_unharmed(target)


@case("replaced on disk while it is recorded")
def replaced_meanwhile(here):
    path = copy(here, "deep", "target")
    target = here.spawn_ready(path, "loop")
    recorder = here.spawn_recorder("-p", target.pid)
    wait_for("probes", lambda: is_probed(target.pid))
    os.replace(copy(here, "sorting", "new"), path)
    other = here.run(path)
    same("the new file's result", (0, "result 158\n"), other[:2])
    recorder.send_signal(signal.SIGINT)
    same("status of record", 0, recorder.wait(30))
    text_is_clean(target.pid)
    ends_unharmed(target)


@case("set-user-id, started by an unprivileged user")
def set_user_id(here):
    if os.statvfs(here.directory).f_flag & os.ST_NOSUID:
        raise Skip(f"{here.directory} is on a file system without set-user-id")
    path = copy(here, "drops", "target")
    path.chmod(0o4755)
    before = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    status, out, _ = here.record("--", *before, path)
    same("result", (0, "result 10100\n"), (status, out))
    tree_is_right(here, "drops", "drops", path)
    here.nothing_is_stopped()


@case("in namespaces of its own, attached")
def in_namespaces(here):
    outer = here.spawn_ready("unshare", "-m", "-p", "-f", program("deep"), "loop")
    pid = only_child(outer.pid)
    here.record("--budget", "none", "-p", pid, "--duration", "0.2")
    check(here.value("SELECT count(*) FROM events") > 0, "nothing was recorded")
    text_is_clean(pid)
    os.kill(pid, signal.SIGTERM)
    out, err = outer.communicate(timeout=30)
    check(outer.returncode == 0 and "unharmed" in out, f"it ended with {outer.returncode}: {out}{err}")


# ----------------------------------------------------------------------------------------- interpreters


@case("Python interpreter", "/usr/bin/python3", "interpreted.py")
@case("bash with subshells, pipes, job control", "/bin/bash", "interpreted.sh")
def interpreter(here, path, script):
    command = (path, HERE / "programs" / script)
    wanted = here.run(*command)
    check(wanted[0] == 0, f"without tracectl: {wanted}")
    # Few enough that the row is short, and inside of what recurses, throws, forks and waits.
    functions = "^(_PyEval_EvalFrameDefault|PyErr_.*|_?PyObject_Call.*|execute_command.*|wait_for.*|make_child|expand_.*)"
    status, out, err = here.record("--functions", functions, "--", *command)
    check((status, out) == wanted[:2], f"wanted {wanted}, got {status} {out} {err}")
    check(here.value("SELECT count(*) FROM events WHERE kind = 'call'") > 100, "hardly anything was recorded")
    here.nothing_is_stopped()


# ------------------------------------------------------------------------------- others that hold the target


@case("under strace, attached")
def under_strace(here):
    tracer = here.spawn_ready("strace", "-f", "-e", "trace=none", "-o", "/dev/null", program("deep"), "loop")
    pid = only_child(tracer.pid)
    here.record("--budget", "none", "-p", pid, "--duration", "0.2")
    check(here.value("SELECT count(*) FROM events") > 0, "nothing was recorded")
    text_is_clean(pid)
    check(state_of(pid) not in "T", "the target is left stopped")
    os.kill(pid, signal.SIGTERM)
    out, err = tracer.communicate(timeout=30)
    check("unharmed" in out, f"it ended with {tracer.returncode}: {out}{err}")


@case("a debugger in the recorded command: strace", ("strace", "-f", "-e", "trace=none", "-o", "/dev/null"))
@case("a debugger in the recorded command: gdb", ("gdb", "-batch", "-nx", "-ex", "run", "--args"))
def debugger_inside(here, debugger):
    command = (*debugger, program("sorting"))
    wanted = here.run(*command)
    status, out, err = here.run(TRACECTL, "-q", "record", "--exit-status", "--functions", "^(work|sorted|fill)$", "--",
                                *command)
    # Nobody who is debugged is stopped, so a short program may be over before it has probes; that is said then.
    unseen = status == 3 and "no function matches" in err
    check((status == wanted[0] or unseen) and "result 158\n" in out, f"wanted {wanted}, got {status} {out} {err}")
    check("signal SIG" not in out, f"the debugger sees signals: {out}")
    here.nothing_is_stopped()


@case("stopped before by SIGSTOP", signal.SIGSTOP)
@case("stopped before by job control", signal.SIGTSTP)
def stopped_before(here, how):
    # In a process group of its own: SIGTSTP stops none that is orphaned, as that of a background run may be.
    target = here.spawn_ready(program("deep"), "loop", process_group=0)
    target.send_signal(how)
    wait_for("the target to stop", lambda: state_of(target.pid) == "T")
    here.record("--budget", "none", "-p", target.pid, "--duration", "0.2")
    same("state after the recording", "T", state_of(target.pid))
    text_is_clean(target.pid)
    target.send_signal(signal.SIGCONT)
    here.record("--budget", "none", "-p", target.pid, "--duration", "0.2")
    check(here.value("SELECT count(*) FROM events") > 0, "nothing was recorded once it went on")
    ends_unharmed(target)


@case("stopped and continued while it is recorded")
def stopped_meanwhile(here):
    target = here.spawn_ready(program("jumps"), "loop")
    recorder = here.spawn_recorder("-p", target.pid)
    wait_for("probes", lambda: is_probed(target.pid))
    for _ in range(5):
        target.send_signal(signal.SIGSTOP)
        wait_for("the target to stop", lambda: state_of(target.pid) == "T")
        target.send_signal(signal.SIGCONT)
    target.send_signal(signal.SIGSTOP)
    wait_for("the target to stop", lambda: state_of(target.pid) == "T")
    recorder.send_signal(signal.SIGINT)
    same("status of record", 0, recorder.wait(30))
    same("state after the recording", "T", state_of(target.pid))
    target.send_signal(signal.SIGCONT)
    ends_unharmed(target)


@case("waits are not interrupted when a recording begins or ends")
def waits(here):
    target = here.spawn_ready(program("waits"))
    for _ in range(5):
        here.record("-p", target.pid, "--duration", "0.1")
    ends_unharmed(target)


@case("recordings that begin and end while frames are open, ten times", "deep", "--returns", "probe")
@case("recordings that begin and end while exceptions fly, ten times", "unwinding")
@case("recordings that begin and end while children are forked, ten times", "forks_hot.frames")
def many_times(here, name, *options):
    target = here.spawn_ready(program(name), "loop")
    for _ in range(10):
        here.record(*options, "-p", target.pid, "--duration", "0.02")
    text_is_clean(target.pid)
    ends_unharmed(target)


@case("two recorders, one with return probes, share libraries")
def two_recorders(here):
    """The links of one are asked at the other's probes, too: they must ask for nothing in a process not their own."""
    other = here.spawn_ready(program("jumps"), "loop")
    recorder = here.spawn_recorder("--returns", "probe", "--images", "all", "-p", other.pid)
    wait_for("probes", lambda: is_probed(other.pid))
    for _ in range(3):
        status, out, _ = here.record("--returns", "none", "--images", "all", "--", program("drops"))
        same("result", (0, "result 10100\n"), (status, out))
    recorder.send_signal(signal.SIGINT)
    same("status of the other recorder", 0, recorder.wait(30))
    ends_unharmed(other)


def profile(here, *before):
    """What gprof makes of a run of a program that is built for it."""
    here.run(*before, program("deep.pg"), cwd=here.directory)
    return here.run("gprof", "-b", "-q", program("deep.pg"), here.directory / "gmon.out")[1]


@case("gprof", "auto")
@case("gprof, return probes", "auto", "--returns", "probe")
@case("gprof, inline", "inline")
def profiled(here, backend, *options):
    """A profiler is told by each function where it was called from."""
    wanted = profile(here)
    check("descend [" in wanted, "there is no call graph without tracectl")
    got = profile(here, TRACECTL, "-q", "record", "--backend", backend, *options, "--")
    # Times are sampled, and order the lines; who called whom, and how often, is counted.
    same("the call graph", *(set(re.findall(r"(\S+)\s+descend \[", text)) for text in (wanted, got)))
    check(here.value("SELECT count(*) FROM events") > 0, "nothing was recorded")


@case("a second recorder with return probes: the tree is right")
@case("a second recorder with return probes: the tree is right, inline", "--backend", "auto")
def beside_return_probes(here, *options):
    """What it puts in the place of return addresses is seen through, or said to be assumed."""
    target = here.spawn_ready(program("nested"), "loop")
    other = here.spawn(TRACECTL, "-q", "-d", here.directory / "other.db", "record", "--returns", "probe", "--budget", "none",
                       "-p", target.pid)
    wait_for("the other one's return probes", lambda: "[uprobes]" in open(f"/proc/{target.pid}/maps").read())
    here.record(*options, "--budget", "none", "-p", target.pid, "--duration", "0.5")
    other.send_signal(signal.SIGINT)
    same("status of the other recorder", 0, other.wait(30))
    for caller, callee in (("outer", "middle"), ("middle", "leaf")):
        inside, assumed, calls = map(int, here.query(f"""SELECT sum(p.name IS '{caller}'), sum(c.assumed), count(*) FROM calls c
            JOIN functions f USING (function_id) LEFT JOIN calls o ON o.thread_id = c.thread_id AND o.seq = c.parent_seq
            LEFT JOIN functions p ON p.function_id = o.function_id WHERE f.name = '{callee}'""")[0])
        # The first call may be inside of one that began before the recording.
        check(calls > 10 and calls - inside - assumed <= 1, f"{inside} of {calls} {callee} are in {caller}, {assumed} assumed")
    text_is_clean(target.pid)
    ends_unharmed(target)


@case("bpftrace beside")
@case("bpftrace beside: return probes", "--returns", "probe")
@case("bpftrace beside: all images", "--images", "all")
@case("bpftrace beside: inline", "--backend", "inline")
def beside_bpftrace(here, *options):
    """Its probes, on entries and returns, are in the same functions, before ours and after them."""
    path = copy(here, "nested", "target")
    wanted = here.run(path)
    target = here.spawn_ready(path, "loop")
    probes = f"uprobe:{path}:middle {{ @calls = count(); }} uretprobe:{path}:leaf {{ @returns = count(); }}"
    other = here.spawn("bpftrace", "-e", probes)
    wait_for("bpftrace's probes", lambda: is_probed(target.pid))
    here.record(*options, "--budget", "none", "-p", target.pid, "--duration", "0.5")
    check(here.value("SELECT count(*) FROM events") > 0, "nothing was recorded, attached")
    same("result", wanted[:2], here.record(*options, "--", path)[:2])
    check(is_probed(target.pid), "bpftrace's probes are gone")
    other.send_signal(signal.SIGINT)
    out, err = other.communicate(timeout=60)
    counts = dict(re.findall(r"@(\w+): (\d+)", out))
    check(int(counts.get("calls", 0)) > 0 and int(counts.get("returns", 0)) > 0, f"bpftrace saw nothing: {out}{err}")
    text_is_clean(target.pid)
    ends_unharmed(target)


@case("bpftrace comes while functions have inline probes, and goes")
def bpftrace_comes_later(here):
    """Its breakpoint is in front of the jump, and what it goes on at behind the first instruction is the jump."""
    target = here.spawn_ready(copy(here, "nested", "target"), "loop")
    recorder = here.spawn_recorder("--budget", "none", "-p", target.pid)
    wait_for("something to be recorded", here.has_events)
    path = f"/proc/{target.pid}/exe"
    other = here.spawn("bpftrace", "-e", f"uprobe:{path}:middle {{ @calls = count(); }} uprobe:{path}:outer {{ @outer = count(); }} "
                       "interval:ms:500 { exit(); }")
    out, err = other.communicate(timeout=60)
    counts = dict(re.findall(r"@(\w+): (\d+)", out))
    check(int(counts.get("calls", 0)) > 0 and int(counts.get("outer", 0)) > 0, f"bpftrace saw nothing: {out}{err}")
    recorder.send_signal(signal.SIGINT)
    same("status of record", 0, recorder.wait(LIMIT))
    shown = here.query("SELECT value FROM tags WHERE key LIKE 'backend:%'")
    check(shown and "inline" in shown[0][0], f"there were no inline probes: {shown}")
    text_is_clean(target.pid)
    ends_unharmed(target)


@case("killed recorder, hot target", "coroutines")
@case("killed recorder, deep target", "deep")
@case("killed recorder, deep target, return probes", "deep", "--returns", "probe")
def killed(here, name, *options):
    target = here.spawn_ready(program(name), "loop")
    for _ in range(3):
        recorder = here.spawn_recorder(*options, "-p", target.pid)
        wait_for("probes", lambda: is_probed(target.pid))
        recorder.kill()
        recorder.wait()
        text_is_clean(target.pid)
    ends_unharmed(target)


@case("the first thread ends: inline")
@case("the first thread ends: uprobe", "--backend", "uprobe")
@case("the first thread ends: ptrace", "--life-cycle", "ptrace")
def first_thread_ends(here, *options):
    """While it is recorded, and before: its process goes on, is recorded, and left without probes."""
    target = here.spawn_ready(program("first_ends"))
    options = ("--budget", "none", *options, "-p", target.pid)
    recorder = here.spawn_recorder(*options)
    wait_for("probes", lambda: is_probed(target.pid))
    target.send_signal(signal.SIGUSR1)
    wait_for("the first thread's end", lambda: state_of(target.pid) == "Z")
    other = max(map(int, os.listdir(f"/proc/{target.pid}/task")))
    recorder.send_signal(signal.SIGINT)
    same("status of record", 0, recorder.wait(LIMIT))
    text_is_clean(other)
    here.record(*options, "--duration", "0.3")
    check(here.value("SELECT count(*) FROM events WHERE run_id = (SELECT max(run_id) FROM runs)") > 0, "nothing was recorded")
    text_is_clean(other)
    recorder = here.spawn_recorder(*options)
    wait_for("probes", lambda: is_probed(other))
    recorder.kill()
    recorder.wait()
    text_is_clean(other)
    ends_unharmed(target)


def mapped_privately(path):
    with open(path, "rb") as file:
        with mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ) as mapped:
            return bytes(mapped)


@case("the file of a recorded program is what it was for who reads it, and for who maps it afterwards")
def file_is_unchanged(here):
    path = copy(here, "deep", "target")
    content = path.read_bytes()
    target = here.spawn_ready(path, "loop")
    recorder = here.spawn_recorder("-p", target.pid)
    wait_for("probes", lambda: is_probed(target.pid))
    check(path.read_bytes() == content, "who reads the file meanwhile sees probes")
    recorder.send_signal(signal.SIGINT)
    same("status of record", 0, recorder.wait(30))
    text_is_clean(target.pid)
    check(mapped_privately(path) == content, "who maps the file afterwards sees probes")
    ends_unharmed(target)


# ------------------------------------------------------------------- processes and threads that no library knows of


def raw_children(out):
    """What each of them called, by function and process."""
    return {(name, pid): int(count) for name, pid, count in re.findall(r"^made (in_\w+) (\d+) (\d+)$", out, re.M)}


@case("children by system calls of the program's own")
@case("children by system calls of the program's own: timed", "--time", "full")
@case("children by system calls of the program's own: uprobe", "--backend", "uprobe")
def raw_children_launched(here, *options):
    """Every call under the process that made it, or counted. Of those that share a thread control block inline probes
    record none; nothing else is missing."""
    status, out, err = here.record(*options, "--functions", "^in_", "--", copy(here, "raw_children", "target"))
    same("status", 0, status)
    wanted = raw_children(out)
    got = {(name, pid): int(count) for name, pid, count in here.query(
        """SELECT c.name, p.pid, sum(c.calls) FROM call_counts c JOIN threads t ON t.run_id = c.run_id AND
        t.label = c.thread JOIN processes p USING (process_id) GROUP BY 1, 2""")}
    lost = here.value("SELECT coalesce(sum(count), 0) FROM losses")
    same("calls recorded and lost", sum(wanted.values()), sum(got.values()) + lost)
    wrong = {call: count for call, count in got.items() if count > wanted.get(call, 0)}
    check(not wrong, f"recorded under another process, or too often: {wrong}, wanted {wanted}")
    apart = {call for call in wanted if call[0] not in ("in_maker", "in_memory", "in_thread", "in_thread_twice")}
    missing = {call for call in (wanted if "uprobe" in options else apart) if got.get(call) != wanted[call]}
    check(not missing, f"missing: {missing}, recorded: {got}, {err}")


@case("children by system calls of the program's own, attached", "uprobe")
@case("children by system calls of the program's own, attached, inline", "inline")
def raw_children_attached(here, backend):
    target = here.spawn_ready(copy(here, "raw_children", "target"), "loop")
    for _ in range(3):
        here.record("--backend", backend, "--functions", "^in_", "--budget", "none", "-p", target.pid,
                    "--duration", "0.3")
        text_is_clean(target.pid)
        here.nothing_is_stopped()
    several = here.query("""SELECT group_concat(c.name) FROM call_counts c JOIN threads t ON t.run_id = c.run_id AND
        t.label = c.thread JOIN processes p USING (process_id) WHERE t.label NOT LIKE '0.%'
        GROUP BY c.run_id, p.process_id HAVING count(DISTINCT c.name) > 1""")
    check(not several, f"a child has what others called: {several}")
    check(here.value("SELECT sum(calls) FROM call_counts") > 0, "nothing was recorded")
    ends_unharmed(target)


# ------------------------------------------------------------------------------------ limits of memory


def is_emptied(processes):
    """Whether a control group has no process any more; those that a failed case has left there are killed."""
    left = processes.read_text("utf-8").split()
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    return not left


@contextlib.contextmanager
def memory_group(limit):
    """A control group with a limit of memory: the file that takes its processes."""
    for line in pathlib.Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        _, where, kind, options = line.split()[:4]
        if kind == "cgroup" and "memory" in options.split(","):
            name = "memory.limit_in_bytes"
        elif kind == "cgroup2" and "memory" in pathlib.Path(where, "cgroup.subtree_control").read_text("utf-8").split():
            name = "memory.max"
        else:
            continue
        try:
            group = pathlib.Path(tempfile.mkdtemp(prefix="tracectl-harm.", dir=where))
        except OSError as error:
            raise Skip(f"no control group can be made: {error}") from error
        try:
            (group / name).write_text(str(limit), "utf-8")
            yield group / "cgroup.procs"
        finally:
            wait_for("the group to be empty", lambda: is_emptied(group / "cgroup.procs"))
            group.rmdir()
        return
    raise Skip("memory has no control groups here")


@case("a limit of memory smaller than what probes write, attached", "uprobe")
@case("a limit of memory smaller than what probes write, attached, inline", "inline")
def memory_is_limited(here, backend):
    with memory_group(16 << 20) as processes:
        target = here.spawn_ready("bash", "-c", f'echo $$ >{processes}; exec "$@"', "bash", program("deep"), "loop")
        recorder = here.spawn_recorder("--backend", backend, "--budget", "none", "-p", target.pid)
        wait_for("something to be recorded", lambda: here.has_events())
        recorder.send_signal(signal.SIGINT)
        same("status of record", 0, recorder.wait(LIMIT))
        ends_unharmed(target)


# ------------------------------------------------------------- what cannot be hidden, and is said in the README


@case("a checksum of the own code: visible while recorded, right afterwards")
def own_checksum(here):
    same("plain", 0, here.run(program("text_sum"))[0])
    same("while recorded", (1, "result 1\n"), here.record("--", program("text_sum"))[:2])
    same("afterwards", 0, here.run(program("text_sum"))[0])


@case("a copy of code that is made executable later: it has the probe, and dies of it", signal.SIGSEGV)
@case("a copy of code that is made executable later: it has the uprobe, and dies of it", signal.SIGTRAP, "--backend",
      "uprobe")
def copied_code(here, died_of, *options):
    copies = ("env", "COPY_LATER=1", program("copies_code"))
    same("plain", (0, "result 40\n"), here.run(*copies)[:2])
    same("while recorded", 128 + died_of, here.record(*options, "--", *copies)[0])
    same("without the copied function", (0, "result 40\n"),
         here.record("--exclude", "^original$", "--", *copies)[:2])


# ------------------------------------------------------------------------------------ copies of the target's code


@case("a program that maps memory to run a copy of its code in: its probes go first", "uprobe")
@case("a program that maps memory to run a copy of its code in: its probes go first, inline", "inline")
def memory_for_a_copy(here, backend):
    copies = copy(here, "copies_code", "target")  # uprobes are in all processes of a program: another case records it, too
    same("while recorded", (0, "result 40\n"), here.record("--backend", backend, "--", copies)[:2])
    check(here.query("SELECT 1 FROM blind WHERE cause LIKE '%run a copy of its code in%'"), "it is not said")


@case("valgrind in the recorded command", ())
@case("valgrind in the recorded command, inline", ("--backend", "inline"))
@case("valgrind in the recorded command, libraries too", ("--images", "all"))
def valgrind_inside(here, options):
    status, out, _ = here.record(*options, "--", "valgrind", "-q", program("deep"))
    same("result", (0, "result 15000\n"), (status, out))
    untraced = here.query("SELECT value FROM tags WHERE key LIKE 'untraced:%memcheck%'")
    same("what is said of the tool", 1, len(untraced))
    here.nothing_is_stopped()


@case("valgrind runs the recorded program meanwhile, and is attached to")
def valgrind_beside(here):
    other = here.spawn_ready("valgrind", "-q", program("deep"), "loop")
    status, out, _ = here.record("--", program("deep"))
    same("result", (0, "result 15000\n"), (status, out))
    check(here.value("SELECT count(*) FROM events") > 0, "nothing was recorded")
    status, _, err = here.run(TRACECTL, "-q", "record", "-p", other.pid, "--duration", "0.1")
    check(status != 0 and "copies of their code" in err, f"status {status}: {err}")
    ends_unharmed(other)


@case("node", ())
@case("node that moves its code to huge pages", ("--use-largepages=on",))
def node(here, options):
    functions = ("--functions", "^node::(Start|LoadEnvironment|SpinEventLoop)")
    command = ("/usr/bin/node", *options, "-e", "console.log(6 * 7)")
    status, out, err = here.record(*functions, "--", *command)
    same("result", (0, "42\n"), (status, out))
    events = here.value("SELECT count(*) FROM events")
    blind = here.value("SELECT count(*) FROM blind WHERE cause LIKE '%moves its code%'")
    check(blind > 0 if options else events > 0, f"{events} events, {blind} blind functions: {err}")
