# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The harm matrix: which targets, built how, recorded with which options, and how much of a recording must be right."""
import dataclasses
import os

from matrix import PROGRAMS

OPTIONS = {
    "default": [],
    "timed": ["--time", "full"],
    "none": ["--returns", "none"],
    "exact": ["--returns", "exact"],
    "all images": ["--images", "all"],
    "no hold": ["--no-hold"],
    "uprobe": ["--backend", "uprobe"],
    "probe": ["--returns", "probe"],
    "sites": ["--returns", "sites"],
}
UPROBES_ALONE = ("uprobe", "probe", "sites")  # no inline probes
EVERY = tuple(options for options in OPTIONS if options != "no hold")
EACH_RETURN = ("default", "none", "uprobe", "probe", "sites")
THREE = ("default", "uprobe", "probe")
ATTACHED = THREE


@dataclasses.dataclass
class Row:
    """One line of the matrix; `name` begins the names of its cases."""

    name: str
    program: str  # of the build's tests/harm, or an absolute path
    arguments: tuple = ()
    before: tuple = ()  # a command that runs the program: words before it
    record: tuple = ()  # more options of record
    options: tuple = THREE
    truth: str = "instrumented"  # "own": the program prints "calls NAME NUMBER"; "": only that it is unharmed
    level: str = "tree"  # see truth.compare; without returns never more than "order"
    inline_level: str = ""  # the same with inline probes, which know less of calls out of untraced code; "": the same
    status: int = 0  # of the program itself
    lossy: bool = False  # something may be lost, and must then be said to be
    changes: bool = False  # its code in memory is not the file's, whether it is recorded or not
    attach: bool = False  # "TARGET loop" is recorded with -p, too (programs/harm.h)
    idle: bool = False  # and none of its program's own functions is called then


def variants(name, program, suffixes, **more):
    return [Row(f"{name}, {suffix}", f"{program}.{suffix}", **more) for suffix in suffixes]


BUILDS = ("nopie", "static", "static-pie", "stripped")

ROWS = [
    Row("C++ exceptions through 20 frames", "unwinding", options=EVERY, attach=True),
    Row("C++ exceptions caught, rethrown", "exceptions", options=EACH_RETURN),
    *variants("C++ exceptions", "unwinding", BUILDS),
    Row("C++ terminate by noexcept, own handler", "terminate", options=EACH_RETURN, status=42, level="order"),
    Row("C++ terminate by noexcept, abort", "terminate", ("abort",), status=134, level="order"),
    Row("Rust panics", "panics.rust", options=EACH_RETURN, truth="own", level="counts"),
    Row("Rust panics, stripped", "panics.rust.stripped", truth="own", level="counts"),
    *(
        Row(f"Go {version}{build}", f"goroutines.go{version}{build}", truth="own", level="counts",
            options=EACH_RETURN if not build else THREE, record=("--functions", r"^main\."))
        for version in ("1.19", "1.22", "1.23")
        for build in ("", ".pie", ".stripped")
    ),
    *(
        Row(f"Go {version}, its runtime too", f"goroutines.go{version}", truth="own", level="counts", options=("default",))
        for version in ("1.19", "1.22", "1.23")
    ),
    Row("longjmp over frames, libraries, signals", "jumps", options=EVERY, attach=True, inline_level="order"),
    Row("longjmp and setjmp by turns", "longjmp", options=EACH_RETURN),
    *variants("longjmp", "jumps", BUILDS, inline_level="order"),
    Row("recursion 10,000 deep", "deep", options=EVERY, attach=True),
    Row("recursion, frame pointers", "deep.frames", options=EACH_RETURN),
    *variants("recursion", "deep", ("nopie", "static", "stripped")),
    Row("recursion of many kinds", "recursion", options=EACH_RETURN),
    Row("qsort callbacks", "sorting", options=EVERY, attach=True, inline_level="order"),
    *variants("qsort callbacks", "sorting", ("static", "stripped"), inline_level="order"),
    *variants("qsort callbacks", "sorting", ("mold", "lld", "gold", "noplt", "static-pie"), attach=True,
              inline_level="order"),
    Row("recursion, musl", "deep.musl", attach=True),
    *variants("C++ exceptions", "unwinding", ("mold", "lld", "gold", "noplt")),
    Row("pthread_exit and cancellation", "thread_ends", options=EACH_RETURN, attach=True),
    Row("threads", "threads", options=EACH_RETURN),
    Row("signals on an alternate stack", "signals", options=EACH_RETURN),
    Row("signals on a stack above the thread's", "altstack_above", options=EACH_RETURN, attach=True),
    Row("signals of a timer", "timer_signals", options=EACH_RETURN, level="counts", attach=True),
    Row("calls from one stack to another", "stacks", options=THREE, level="counts", attach=True),
    Row("makecontext coroutines", "coroutines", options=EACH_RETURN, level="counts", attach=True),
    Row("makecontext coroutines by turns", "contexts", options=EACH_RETURN, level="counts"),
    Row("fork without exec, hot probes", "forks_hot.frames", options=EACH_RETURN, attach=True),
    Row("fork without exec, nop5 entries", "forks.nop5", options=EACH_RETURN),
    Row("fork, vfork, posix_spawn with exec", "forks", options=EVERY),
    Row("vfork", "vforks", options=EACH_RETURN, attach=True),
    # More children at once than a library is probed in.
    Row("vfork, libraries too", "vforks", options=("all images",), lossy=True),
    Row("execve of itself and of another binary", "execs", options=EVERY),
    Row("execve by another thread", "exec_threads", options=EACH_RETURN, level="counts"),
    Row("dlopen and dlclose", "dlopens", options=EACH_RETURN, attach=True, record=("--images", "all"),
        inline_level="order"),
    Row("privileges dropped", "drops", options=EVERY),
    Row("seccomp", "seccomp", options=EVERY),
    Row("seccomp, frame pointers", "seccomp.frames", options=EACH_RETURN),
    Row("seccomp, static", "seccomp.static"),
    # It has no probes any more once it makes its own code writable.
    Row("code written and protected at run time", "code_writer", options=EACH_RETURN, truth="", changes=True,
        attach=True),
    Row("operands of its own code changed", "patches_itself", options=EACH_RETURN, truth="", attach=True, changes=True),
    Row("operands changed in a writable segment", "patches_itself.writable", truth="", attach=True, changes=True),
    Row("text relocations", "deep.textrel", options=("default", "uprobe", "probe", "sites", "none"), truth="", attach=True,
        changes=True),
    Row("text relocations in a library", "dlopens.textrel", options=("default", "uprobe"), record=("--images", "all"),
        truth="", attach=True),
    Row("patchable entries that nothing patches", "deep.patchable", attach=True),
    Row("XRay, patched before main", "deep.xray", before=("env", "XRAY_OPTIONS=patch_premain=true verbosity=0"),
        options=("default", "uprobe", "sites"), truth="", attach=True, changes=True),
    Row("backtraces of itself", "backtraces", options=EACH_RETURN, attach=True),
    Row("a function asks who called it", "caller_checks", options=EACH_RETURN, attach=True),
    Row("frame pointers walked by the program itself", "frame_walker", attach=True),
    Row("return addresses replaced by the program itself", "trampolines", options=EVERY, level="counts", attach=True),
    Row("syscall user dispatch", "dispatch", options=EACH_RETURN, attach=True),
    Row("OCaml, collecting garbage", "collected.ml.exe", truth="", attach=True),
    Row("Haskell", "lazy.hs.exe", truth="", attach=True),
    Row("Java", "/usr/bin/java", ("-XX:+UseSerialGC", "-cp", os.path.join(PROGRAMS, "java"), "Walked"), truth="",
        attach=True, idle=True),
    *(
        Row(f"sanitizers: {build}", f"shadowed.{build}", truth="", lossy=True, attach=build in ("asan", "tsan", "msan"),
            options=("default", "uprobe") if build in ("asan", "tsan", "ubsan", "msan") else ("default",))
        for build in ("asan", "lsan", "tsan", "ubsan", "clang-tsan-nopie", "msan", "msan-nopie", "dfsan")
    ),
    Row("address space limited", "limited", before=("prlimit", "--as=48000000"), options=("default", "uprobe"), attach=True,
        truth=""),
    Row("address space limited by itself", "limited.own", options=("default", "uprobe"), truth=""),
    *(
        Row(f"all memory locked, {how}", program, options=("default", "uprobe"), attach=program == "locked", truth="",
            before=("prlimit", "--memlock=8388608:8388608", "setpriv", "--bounding-set=-ipc_lock"))
        for how, program in (("by the C library", "locked"), ("by system call", "locked.raw"))
    ),
    Row("64 TiB and the low 2 GiB reserved", "reserves", options=("default", "uprobe"), attach=True, truth=""),
    Row("a heap of 3 GiB, no room below the program", "heap_growth.low", options=("default", "uprobe"), truth=""),
    Row("a heap of 3 GiB, legacy layout", "heap_growth", before=("setarch", "-L", "-R"), options=("default",), truth=""),
    Row("a stack without limit", "deep", before=("prlimit", "--stack=unlimited"), options=("default",)),
    # A parent can see that its children are stopped at their exec: who minds says --no-hold.
    Row("SIGCHLD and waits of a parent", "child_signals", options=("no hold",), truth="", lossy=True),
    Row("own mount and pid namespaces", "jumps", before=("unshare", "-m", "-p", "-f"), inline_level="order"),
    Row("started by a shell with pipes", "deep", before=("bash", "-c", '"$0" | cat; exit "${PIPESTATUS[0]}"')),
]
