/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Wire records: what the BPF programs write into the ring buffer and the collector reads, on one machine,
 * within one run. They are as small as they can be and mean nothing outside collector/stream/, which
 * translates them into the store's events.
 *
 * Kinds are append-only: a number keeps its meaning.
 */
#ifndef TRACECTL_BPF_WIRE_H
#define TRACECTL_BPF_WIRE_H

#ifndef __bpf__ /* there the types come from vmlinux.h */
#include <linux/types.h>
#endif

enum wire_kind {
    WIRE_CALL = 1,      /* struct wire_call */
    WIRE_RETURN = 2,    /* struct wire_call */
    WIRE_CALL_FROM = 3, /* struct wire_call_from: a call whose return will not be seen, or may not be */
    WIRE_LOST = 4,      /* struct wire_lost */
    WIRE_FORK = 5,      /* struct wire_fork: a thread or a process */
    WIRE_EXEC = 6,      /* struct wire_exec */
    WIRE_EXIT = 7,      /* struct wire_exit: a thread; the last one of a process says so */
    WIRE_LIBRARIES = 8, /* struct wire_libraries: the dynamic linker has mapped or unmapped libraries */
};

enum wire_flags {
    WIRE_ON_SIGNAL_STACK = 1, /* the stack pointer lies in the thread's alternate signal stack */
    WIRE_LAST_THREAD = 2,     /* WIRE_EXIT: no thread of the process is left */
    WIRE_RETURN_UNSEEN = 4,   /* a call whose return is not probed: it will have to be inferred */
    WIRE_HELD = 8,     /* FORK (the child), EXEC, LIBRARIES: the process stands still until it is let go */
    WIRE_WAITING = 16, /* LIBRARIES: the thread waits, for a moment, until it is let go */
};

/* Starts every record. `ns` is 0 where no time was taken: the clock is the dearest part of a probe, and one
 * record in four, or the first one after a tick or another thread, is enough for --time anchor. */
struct wire_header {
    __u8 kind;
    __u8 flags;
    __u16 sp_high; /* bits 32 to 47 of the stack pointer */
    __u32 tid;
    __u64 ns; /* CLOCK_MONOTONIC */
};

/* At a call the stack pointer points to the return address; after a return it lies just above that slot. */
struct wire_call {
    struct wire_header header;
    __u32 sp_low;
    __u32 function; /* index of the probe, as given in its cookie */
};

struct wire_call_from {
    struct wire_call call;
    __u64 return_address; /* 0 when the stack could not be read */
    __u64 gone; /* calls with entry stack pointers up to this one have returned; 0: nothing is known */
};

/* Records of this thread that found the ring full since its last record. */
struct wire_lost {
    struct wire_header header;
    __u32 calls;
    __u32 returns;
};

struct wire_fork {
    struct wire_header header; /* tid: the new thread */
    __u32 tgid, parent_tid, parent_tgid, unused;
};

struct wire_exec {
    struct wire_header header; /* tid: the process, as every exec makes it */
    __u32 old_tid, unused;     /* the thread that called exec */
};

struct wire_libraries {
    struct wire_header header;
    __u32 tgid, unused;
};

struct wire_exit {
    struct wire_header header;
    __u32 tgid;
    __u32 exit_code; /* as wait(2) gives it; of the process where WIRE_LAST_THREAD is set */
    char comm[16];
};

_Static_assert(sizeof(struct wire_header) == 16, "wire_header");
_Static_assert(sizeof(struct wire_call) == 24, "wire_call");
_Static_assert(sizeof(struct wire_call_from) == 40, "wire_call_from");
_Static_assert(sizeof(struct wire_lost) == 24, "wire_lost");
_Static_assert(sizeof(struct wire_fork) == 32, "wire_fork");
_Static_assert(sizeof(struct wire_exec) == 24, "wire_exec");
_Static_assert(sizeof(struct wire_exit) == 40, "wire_exit");
_Static_assert(sizeof(struct wire_libraries) == 24, "wire_libraries");

/*
 * A probe's cookie: its index in the low half, what to do with it in the high half. Unless a flag says
 * otherwise the probe stands where rsp points to the return address, and the return is probed as well.
 */
#define COOKIE_ENTRY_ONLY (1ull << 32)          /* no return probe: it would harm here */
#define COOKIE_WANT_RETURN_ADDRESS (1ull << 33) /* send WIRE_CALL_FROM */
#define COOKIE_AT_CALL (1ull << 34)             /* on the `call rel32` (5 bytes) of a caller */
#define COOKIE_AT_RETURN (1ull << 35)           /* on a RET */
#define COOKIE_RETURN_SEEN (1ull << 36) /* with ENTRY_ONLY: the function's RET instructions are probed */
#define COOKIE_CALLS_ONLY (1ull << 37)  /* with ENTRY_ONLY: nobody wants to know when it returns */
#define COOKIE_NEXT_CALL \
    (1ull << 38) /* the instruction is also a call that is seen here: of the next index */
#define COOKIE_NEXT_JUMP (1ull << 39) /* the same for a tail call */
#define COOKIE_SP_SHIFT 48            /* above: by how many words rsp lies below the return address */
#define COOKIE_SP_OFFSET_MAX (0xffffu * 8)

/* How far the recording is; the collector says so to the kernel side. News of processes come in every phase.
 */
enum recording_phase {
    PHASE_RECORDING = 0,
    PHASE_ATTACHING = 1, /* to running processes: no call is recorded yet, and nobody is stopped */
    PHASE_CLOSED = 2,    /* the end: the same */
};

/* What the kernel side knows of a traced process; kept in the map `processes`. */
enum process_flags {
    PROCESS_TRACED = 1,
    PROCESS_CAN_LOAD = 2,      /* the collector wants to know of new libraries */
    PROCESS_WATCHED = 4,       /* and wants to probe them before they run */
    PROCESS_STARTING = 16,     /* since an exec, until its first libraries have been looked at */
    PROCESS_OWN_PROBES = 32,   /* it has probes that its children must be given as well */
    PROCESS_CHECK_CALLERS = 8, /* code that can throw is mapped: see bpf/callers.h */
};

struct code_range {
    __u64 start, end;
};

#define PROCESS_RANGES 6

struct process_state {
    __u32 flags; /* enum process_flags */
    __u32 unused;
    struct code_range cannot_throw[PROCESS_RANGES]; /* for PROCESS_CHECK_CALLERS */
};

static inline __u64 wire_sp(const struct wire_call *call)
{
    return (__u64)call->header.sp_high << 32 | call->sp_low;
}

#endif
