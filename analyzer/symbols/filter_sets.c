/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The papers give names and examples, not expressions; those here are ours, and docs/analysis.md lists them.
 */
#include "analyzer/symbols/filter_sets.h"

#include <stddef.h>

#define MPI_COLLECTIVES \
    "([Bb]arrier|[Bb]cast|[Rr]educe|[Rr]educe_scatter|[Rr]educe_scatter_block|[Aa]llreduce|[Gg]atherv?|" \
    "[Ss]catterv?|[Aa]llgatherv?|[Aa]lltoall[vw]?|[Ss]can|[Ee]xscan|[Nn]eighbor_allgatherv?|" \
    "[Nn]eighbor_alltoall[vw]?)"

/* C's names of the system calls that programs make by themselves, by what they are about. */
#define FILE_CALLS \
    "p?readv?(64)?|p?writev?(64)?|open(at)?(64)?|creat(64)?|close(_range)?|dup[23]?|l?seek(64)?|" \
    "[fl]?stat(64)?|fstatat(64)?|statx|access|faccessat|unlink(at)?|rename(at2?)?|link(at)?|symlink(at)?|" \
    "readlink(at)?|mkdir(at)?|rmdir|getdents(64)?|chdir|fchdir|getcwd|f?chmod(at)?|[fl]?chown(at)?|umask|" \
    "f?truncate(64)?|f(data)?sync|sync(fs)?|flock|fcntl(64)?|ioctl|pipe2?|splice|tee|vmsplice|sendfile(64)?" \
    "|" \
    "copy_file_range|fallocate(64)?|utimensat|mount|umount2?|[fl]?(get|set|list|remove)xattr|" \
    "inotify_(init1?|add_watch|rm_watch)|memfd_create|fadvise|posix_fadvise(64)?"
#define PROCESS_CALLS \
    "v?fork|clone3?|execv(e|eat)?|_?exit|exit_group|wait([34]|pid|id)?|kill|tg?kill|get(p|pp|t)id|" \
    "(get|set)(re|res)?[ug]id|get(e)[ug]id|(get|set)(pgid|pgrp|sid|groups|priority|rlimit|itimer)|prlimit(" \
    "64)?|" \
    "getrusage|ptrace|prctl|arch_prctl|seccomp|unshare|setns|chroot|pidfd_[a-z_]+|sched_[a-z_]+|" \
    "(rt_)?sig(action|procmask|pending|suspend|timedwait|waitinfo|queue|return|altstack)|signalfd4?|alarm|" \
    "pause|capget|capset|uname|sysinfo|getrandom|syscall"
#define MEMORY_CALLS \
    "mmap(64)?|munmap|mremap|mprotect|madvise|mincore|m(un)?lock(all)?|msync|s?brk|membarrier"
#define WAITING_CALLS \
    "p?poll|p?select|epoll_(create1?|ctl|p?wait2?)|(clock_)?nanosleep|clock_(get|set|getres)(time)?|" \
    "gettimeofday|time|times|timerfd_[a-z]+|timer_[a-z]+|eventfd2?|futex|io_(setup|submit|getevents|" \
    "destroy)|" \
    "io_uring_[a-z_]+"
#define SOCKET_CALLS \
    "socket(pair)?|bind|listen|accept4?|connect|shutdown|(get|set)sockopt|get(sock|peer)name|" \
    "send(to|m?msg)?|recv(from|m?msg)?"
#define SHARED_CALLS "(shm|sem|msg)(get|ctl|op|timedop|at|dt|snd|rcv)|mq_[a-z_]+"

/* First elements of the import paths of Go's standard library. */
#define GO_PACKAGES \
    "archive|bufio|bytes|cmp|compress|container|context|crypto|database|debug|embed|encoding|errors|expvar|" \
    "flag|fmt|go|hash|html|image|index|internal|io|iter|log|maps|math|mime|net|os|path|plugin|reflect|" \
    "regexp|" \
    "runtime|slices|sort|strconv|strings|structs|sync|syscall|testing|text|time|unicode|unique|unsafe|" \
    "vendor|" \
    "weak"

const struct filter_set filter_sets[] = {
    {"returns", NULL, "remove returns (the default); !returns keeps them"},
    {"plt", NULL, "remove stubs of library calls, unless a set keeps them"},
    {"@plt", NULL, "stubs of library calls"},
    {"everything", NULL, "all functions"},
    {"mpi", "/^(MPI_|mpi_[a-z0-9_]+_$)/", "MPI calls, from C and Fortran"},
    {"mpiall", "/MPI|^mpi_[a-z0-9_]+_$/", "names with MPI in them: MPI_, PMPI_, MPID_, ..."},
    {"mpicol", "/^MPI_I?" MPI_COLLECTIVES "(_init)?(_c)?$/", "MPI collectives"},
    {"mpisr", "/^MPI_(Send|Isend|Recv|Irecv|Wait)$/", "MPI_Send, MPI_Isend, MPI_Recv, MPI_Irecv, MPI_Wait"},
    {"mpi-internal", "/^(PMPI|MPID|MPIDI|MPIR|MPIC|MPIU|MPII|MPL|ompi|opal|orte|mca|ucp|ucs|uct|fi)_/,!mpi",
     "functions inside MPI libraries"},
    {"omp", "/^(GOMP|omp|__kmpc)_/", "OpenMP: GOMP_, omp_, __kmpc_"},
    {"ompcrit", "/^(GOMP_critical_(name_)?(start|end)|__kmpc_(end_)?critical(_with_hint)?)$/",
     "OpenMP critical sections"},
    {"ompmutex",
     "/^(omp_(init|destroy|set|unset|test)_(nest_)?lock(_with_hint)?|gomp_mutex_.*|GOMP_atomic_(start|end))$"
     "/",
     "OpenMP locks and atomic sections"},
    {"mem",
     "/mem(p?cpy|ccpy|move|set|cmp|r?chr|mem|chk|align)|[aA]lloc|^(c?free|mmap(64)?|munmap|mremap|s?brk)$|"
     "^_Z(n[wa]|d[la])/",
     "memory: memcpy, memset, malloc, free, new, mmap, ..."},
    {"net",
     "/^_*(socket(pair)?|bind|listen|accept4?|connect|shutdown|(get|set)sockopt|send(to|m?msg|file)?|"
     "recv(from|m?msg)?|get(addr|name)info|gethostby.*)$|network|tcp|udp|sched/",
     "network: sockets, tcp, sched, ..."},
    {"poll", "/poll|yield|sched|^_*p?select$/", "waiting: poll, epoll, select, yield, sched, ..."},
    {"str",
     "/^_*(str|stp|wcs|wcp)n?(case)?(len|cpy|cat|cmp|coll|xfrm|r?chr|c?spn|pbrk|str|tok|sep|dup|to|error)/",
     "strings: strlen, strcpy, strcmp, ..."},
    {"pthread", "/^_*(pthread|thrd|mtx|cnd|sem)_/", "POSIX and C threads"},
    {"alloc",
     "/^_*(libc_)?(m|c|re|v|pv|aligned_|reallocarray|posix_mem|mem)(alloc|align)$|^(reallocarray|c?free)$|"
     "^_Z(n[wa]|d[la])/",
     "allocation: malloc, calloc, realloc, free, new, delete, ..."},
    {"syscalls",
     "/^_*(libc_)?(" FILE_CALLS "|" PROCESS_CALLS "|" MEMORY_CALLS "|" WAITING_CALLS "|" SOCKET_CALLS
     "|" SHARED_CALLS ")$/",
     "C functions for system calls: read, openat, fork, futex, ..."},
    {"go-runtime",
     "/^((internal[/])?runtime[./]|internal[/](abi|bytealg|chacha8rand|cpu|goarch|goos)[./]|_rt0_|type:|go:|"
     "(gogo|gosave_systemstack_switch|gcWriteBarrier|aeshashbody|cmpbody|memeqbody|indexbody|indexbytebody|"
     "countbody|callRet|setg_gcc|debugCall[0-9]+)(\\.|$))/",
     "the Go runtime"},
    {"go-std", "/^(" GO_PACKAGES ")[./]/,go-runtime", "Go's standard library, the runtime included"},
    {"go-user",
     "/^[A-Za-z0-9_.~%-]+([/][^ ]*)?\\.[^ ]/,!go-std,!/^_Z|\\+0x/,"
     "!/\\.(part|cold|constprop|isra|lto_priv|localalias|llvm|resolver|_omp_fn)($|\\.)/",
     "Go functions of all other packages"},
    {"cxx-std", "/^_ZT?[hvc]?[0-9n_]*N?K?(St|S[absiod]|9__gnu_cxx|10__cxxabiv1)|^__cxa_/",
     "the C++ standard library"},
    {"cxx-user", "/^_Z/,!cxx-std,!/^_Z(n[wa]|d[la])/", "all other C++ functions"},
    {NULL, NULL, NULL},
};
