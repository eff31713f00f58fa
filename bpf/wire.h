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
    WIRE_GO = 9,        /* struct wire_go or wire_go_select: a goroutine */
    WIRE_SYNC = 10,     /* struct wire_sync or wire_sync_file: a lock, a message... */
    WIRE_INLINE = 11,   /* struct wire_inline: comes before a call of a thread that has inline probes, too */
    WIRE_SLOTS_SHARED = 12, /* struct wire_slots: a child begins that works on its parent's slots (vfork) */
    WIRE_SLOTS_BACK = 13,   /* struct wire_inline: it does so no more */
    WIRE_OVER_BUDGET = 14,  /* struct wire_over_budget: calls of a function are not recorded from here on */
    WIRE_PACKED = 15,       /* struct wire_packed: calls and returns of a thread, see bpf/predict.h */
    WIRE_CLAIM = 16,        /* struct wire_claim: a thread takes the slots of its inline probes */
    WIRE_REWRITE = 17,      /* struct wire_rewrite: a program may change or copy its code */
    WIRE_RIGHTS = 18, /* struct wire_rights: a process with inline probes is about to change its rights */
};

enum wire_flags {
    WIRE_ON_SIGNAL_STACK = 1, /* the stack pointer lies in the thread's alternate signal stack */
    WIRE_LAST_THREAD = 2,     /* WIRE_EXIT: no thread of the process is left */
    WIRE_RETURN_UNSEEN = 4,   /* a call whose return is not probed: it will have to be inferred */
    WIRE_HELD = 8, /* FORK (the child), EXEC, LIBRARIES, REWRITE, RIGHTS: the process stands still until it is
                      let go */
    WIRE_OF_FUNCTION = 32, /* SYNC: of a function, not of a system call */
    WIRE_WAITING = 16,     /* LIBRARIES, REWRITE: the thread waits, for a moment, until it is let go */
    WIRE_LEFT_BEHIND = 64, /* EXIT, EXEC: the thread's slot holds what did not fit and comes before */
    WIRE_UNFOLLOWED = 128, /* EXIT: it runs on, unseen, in a program whose file gives it other rights */
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
    __u32 go;   /* struct wire_go */
    __u32 sync; /* struct wire_sync and wire_sync_file */
};

struct wire_fork {
    struct wire_header header; /* tid: the new thread */
    __u32 tgid, parent_tid, parent_tgid;
    __u32 shares;       /* enum fork_shares */
    __u64 thread_block; /* fs of the new thread: what pthread_self() says there */
    __u32 own_tid;      /* its id, as its control block has it; 0: not said */
    __u32 unused;
};

/* What the new thread has in common with its maker. */
enum fork_shares {
    FORK_SHARES_MEMORY = 1,
    FORK_SHARES_BLOCK =
        2,            /* and the thread control block, while both run; told of inline probes' processes */
    FORK_IS_LEFT = 4, /* its calls are not wanted: children are not followed */
};

struct wire_exec {
    struct wire_header header; /* tid: the process, as every exec makes it */
    __u32 old_tid, unused;     /* the thread that called exec */
};

/* Values in the map of threads that wait (bpf/libraries.h). */
enum wait_state {
    WAIT_GOES_ON = 1,
    WAIT_STOPPED = 2, /* a tracer stops the thread, which continues when the tracer detaches */
};

struct wire_libraries {
    struct wire_header header;
    __u32 tgid;
    __u32 starting; /* they are the first ones since an exec: 1, else 0 */
};

/* Numbers of areas of inline probes by which they can be marked (bpf/areas.h): below this. */
#define AREAS_THAT_WAIT 512

struct wire_rights {
    struct wire_header header;
    __u32 tgid, unused;
};

struct wire_rewrite {
    struct wire_header header;
    __u32 tgid;
    __u32 copies;  /* the code may be copied; 0: it may be changed */
    __u64 address; /* in a mapping of a file */
};

/* How the arguments of a call lie that makes memory writable, or maps it: the cookie of the probe on it. */
enum rewrite_gate_kind {
    REWRITE_BY_MPROTECT = 1, /* address, size, rights */
    REWRITE_BY_NUMBER = 2,   /* number of the system call, and its arguments */
    REWRITE_BY_MMAP = 3,     /* address, size, rights, flags */
};

struct wire_exit {
    struct wire_header header;
    __u32 tgid;
    __u32 exit_code; /* as wait(2) gives it; of the process where WIRE_LAST_THREAD is set */
    char comm[16];
};

/* What goroutines do; bpf/goroutines.h says what the words mean at each kind of place. */
struct wire_go {
    struct wire_header header;
    __u32 probe; /* index of the probe, as given in its cookie */
    __u32 cases; /* of a select; more than GO_CASES_MAX are not listed */
    __u64 goroutine, object, value, other;
    __u64 place; /* where in the program: the address behind the call, or of the instruction itself */
};

#define GO_CASES_MAX 16

struct wire_go_select {
    struct wire_go go;
    struct {
        __u64 channel, element; /* the runtime's struct scase */
    } cases[GO_CASES_MAX];
};

/*
 * What threads do to each other. `operation` means nothing to the kernel side: it is what the probe's cookie,
 * or the description of the system call, has for it.
 */
struct wire_sync {
    struct wire_header header;
    __u8 operation, phase; /* enum sync_wire_phase */
    __u16 declared;        /* number of the declared function, 0: none; of a system call's file the st_mode */
    __s32 fd;              /* of a system call that has one, else -1 */
    __u64 object, other;   /* arguments; of a file the inode and the device */
    __s64 result;          /* at an end */
    __u64 sp;              /* of a function: where its return address lies; of a system call its number */
    __u64 place;           /* of a function, at its beginning: where it returns to */
};

enum sync_wire_phase { SYNC_WIRE_AT, SYNC_WIRE_BEGIN, SYNC_WIRE_END, SYNC_WIRE_RETURN };

/* At the end of a system call on a file: what file it is. */
struct wire_sync_file {
    struct wire_sync sync;
    __u16 family, type; /* of a socket: AF_, SOCK_; 0: it is none */
    __u16 peeked;       /* nothing was taken out */
    __u16 named;        /* `remote` is that of this datagram; the socket is not connected */
    __u32 net;          /* inode of its network namespace */
    __u32 position;     /* TCP: sequence number behind the last byte that was sent, or received */
    __u16 local_port, remote_port;
    __u32 unused2;
    __u8 local[16], remote[16]; /* 4 or 16 bytes; of a unix socket `remote` is the peer's inode */
};

/* What is recorded of a system call; in the map `sync_calls` by its number. */
enum sync_shape {
    SYNC_SHAPE_NONE,   /* it is not */
    SYNC_SHAPE_PLAIN,  /* object 0 */
    SYNC_SHAPE_FD,     /* of the file in the argument with number `fd` */
    SYNC_SHAPE_ACCEPT, /* the same; at the end, of the file that it returns */
    SYNC_SHAPE_FUTEX,
    SYNC_SHAPE_SLEEP, /* other: ns, out of the struct timespec in argument `fd` */
};

struct sync_call {
    __u8 operation, shape;
    __u8 fd;         /* number of an argument */
    __u8 peek_in;    /* number of the argument that MSG_PEEK is in, 0: in none */
    __u8 wake;       /* of a futex: the operation if it wakes */
    __u8 sends;      /* `position` is that of sending */
    __u8 peer_in;    /* number of the argument that points to the other end's address, 0: none does */
    __u8 message_in; /* number of the argument that points to a struct msghdr, 0: none does */
};

#define SYNC_CALLS 512

/*
 * The cookie of a probe on a function that synchronises: the operation in bits 0 to 7, its phase in 8 to 9,
 * the argument that is the object in 12 to 15 and the one that is `other` in 16 to 19 (from 1; 0: none), the
 * number of the declared function in 32 to 47, the distance of the stack pointer as in other cookies from 48
 * on.
 */
#define SYNC_COOKIE_PHASE_SHIFT 8
#define SYNC_COOKIE_IF_ZERO (1ull << 20) /* only when the zero flag is set */
#define SYNC_COOKIE_OBJECT_SHIFT 12
#define SYNC_COOKIE_OTHER_SHIFT 16
#define SYNC_COOKIE_DECLARED_SHIFT 32

_Static_assert(sizeof(struct wire_sync) == 64, "wire_sync");
_Static_assert(sizeof(struct wire_sync_file) == 120, "wire_sync_file");
_Static_assert(sizeof(struct sync_call) == 8, "sync_call");
/* How far the thread had come with its inline probes. */
struct wire_inline {
    struct wire_header header;
    __u64 cursor; /* collector/arch/record.h; 0: it could not be read */
};

struct wire_claim {
    struct wire_header header;
    __u32 ticket, area; /* collector/arch/record.h */
};

struct wire_slots {
    struct wire_header header; /* tid: the child; comes before its WIRE_FORK */
    __u32 parent_tid;
    __u32 followed; /* 0: no WIRE_FORK comes, its calls are not wanted */
    __u64 cursor;   /* how far the parent had come */
};

/* The first call of a function that was not recorded, for its budget. Calls that come behind it in the ring may lie inside
 * ones that were not recorded. */
struct wire_over_budget {
    struct wire_header header;
    __u32 function; /* index of the probe, as given in its cookie */
    __u32 unused;
};

/*
 * What a thread did, packed. Tokens stand in the thread's slot until they fill a record, or until another
 * record of the thread must come behind them; the collector, which has mapped the slots, looks there as well.
 */
struct wire_packed {
    struct wire_header header;
    __u32 slot;
    __u32 chunk;  /* number of this record among those of the slot, modulo PACKED_CHUNKS */
    __u32 events; /* calls and returns in it */
    __u32 returns;
    __u64 check; /* predict_check() behind it */
    /* tokens follow */
};

#define PACKED_CHUNKS (1u << 24)
#define PACKED_BYTES 1024 /* of tokens in a record, and a few more */
#define PACKED_SLACK 64
#define PACKED_EVENTS 32768u    /* and so many events: the next token but one begins another record */
#define PACKED_TIME_NS 1000000u /* between two times of a thread: the translator drops others */

/*
 * In the map `packed_slots`. Only the thread that owns it writes into it, except when it is left behind: then
 * the collector does, and gives it back. `progress` is written as a whole, and last: a reader that sees the
 * same chunk before and after it has read the tokens has read what was written.
 */
struct packed_slot {
    __u64 progress;        /* chunk in bits 40 to 63, bytes of tokens in 24 to 39, events of the run below */
    __u32 owner, tgid;     /* of the thread; owner 0: none */
    __u32 leaving;         /* it is being given back, for the thread that has ended */
    __u32 left_behind;     /* and did not fit into the ring */
    __u32 broken;          /* set by the collector, which has lost the thread: no more is packed */
    __u32 events, returns; /* in the record: events without the run, returns with it */
    __u32 at;              /* the kernel side's own */
    __u64 reported_ns;     /* the last time in the tokens, 0: none since it is owned */
    struct wire_packed record;
    __u8 tokens[PACKED_BYTES + PACKED_SLACK];
};

#define PROGRESS_LENGTH_SHIFT 24
#define PROGRESS_CHUNK_SHIFT 40

static inline __u32 progress_run(__u64 progress)
{
    return progress & ((1u << PROGRESS_LENGTH_SHIFT) - 1);
}

static inline __u32 progress_length(__u64 progress)
{
    return progress >> PROGRESS_LENGTH_SHIFT & 0xffff;
}

static inline __u32 progress_chunk(__u64 progress)
{
    return (__u32)(progress >> PROGRESS_CHUNK_SHIFT);
}

_Static_assert(sizeof(struct wire_packed) == 40, "wire_packed");
_Static_assert(sizeof(struct packed_slot) == 48 + 40 + PACKED_BYTES + PACKED_SLACK, "packed_slot");
_Static_assert(sizeof(struct wire_over_budget) == 24, "wire_over_budget");
_Static_assert(sizeof(struct wire_inline) == 24, "wire_inline");
_Static_assert(sizeof(struct wire_slots) == 32, "wire_slots");
_Static_assert(sizeof(struct wire_claim) == 24, "wire_claim");
_Static_assert(sizeof(struct wire_go) == 64, "wire_go");
_Static_assert(sizeof(struct wire_go_select) == 320, "wire_go_select");
_Static_assert(sizeof(struct wire_header) == 16, "wire_header");
_Static_assert(sizeof(struct wire_call) == 24, "wire_call");
_Static_assert(sizeof(struct wire_call_from) == 40, "wire_call_from");
_Static_assert(sizeof(struct wire_lost) == 32, "wire_lost");
_Static_assert(sizeof(struct wire_fork) == 48, "wire_fork");
_Static_assert(sizeof(struct wire_exec) == 24, "wire_exec");
_Static_assert(sizeof(struct wire_rewrite) == 32, "wire_rewrite");
_Static_assert(sizeof(struct wire_rights) == 24, "wire_rights");
_Static_assert(sizeof(struct wire_exit) == 40, "wire_exit");
_Static_assert(sizeof(struct wire_libraries) == 24, "wire_libraries");

/*
 * A probe's cookie: its index in the low half, what to do with it in the high half. Unless a flag says
 * otherwise the probe stands where the stack pointer points to the return address, and the return is probed
 * as well.
 */
#define COOKIE_ENTRY_ONLY (1ull << 32)          /* no return probe: it would harm here */
#define COOKIE_WANT_RETURN_ADDRESS (1ull << 33) /* send WIRE_CALL_FROM */
#define COOKIE_AT_CALL (1ull << 34)             /* on the call of a caller */
#define COOKIE_AT_RETURN (1ull << 35)           /* on a return instruction */
#define COOKIE_RETURN_SEEN (1ull << 36) /* with ENTRY_ONLY: the function's RET instructions are probed */
#define COOKIE_CALLS_ONLY (1ull << 37)  /* with ENTRY_ONLY: its return is not wanted */
#define COOKIE_NEXT_CALL (1ull << 38)   /* the instruction is also a recorded call: of the next index */
#define COOKIE_NEXT_JUMP (1ull << 39)   /* the same for a tail call */
#define COOKIE_TAG_SHIFT 40             /* 8 bits: which link the probe belongs to (struct budget_slot) */
/* Above: by how many words the stack pointer lies below the return address; AT_CALL: how many bytes the call is
 * longer than a direct one. */
#define COOKIE_SP_SHIFT 48
#define COOKIE_SP_OFFSET_MAX (0xffffu * 8)

#define COOKIE_TAG(cookie) ((__u8)((cookie) >> COOKIE_TAG_SHIFT))

#define MAX_BUDGET_PROBES (1u << 17) /* when recording has a budget or a trigger */

/*
 * What is counted of a probe when recording has a budget or a trigger; in the map `budget_slots` by the
 * probe's index, which the collector has mapped. Every call is in one of the first three counts, or lost and
 * counted there.
 */
struct budget_slot {
    __u64 window; /* tick in the high half; calls recorded in it in the low half */
    __u64 recorded, missed;
    __u64 outside; /* calls that no trigger's window was open for */
    __u64 early;   /* hits in whatever process while probes are being attached: not recorded, but paid */
    __u32 cost_ns; /* of a recorded call, set by the collector as all that follows */
    __u32 limit;   /* calls in a tick; 0: any number */
    __u8 tag;      /* whose hits count: those of the link with this tag */
    __u8 reported; /* a WIRE_OVER_BUDGET has been sent since the collector took it back */
    __u8 trigger;  /* the function opens windows (bpf/trigger.h) */
    __u8 unused[5];
};

_Static_assert(sizeof(struct budget_slot) == 56, "budget_slot");

/* How far the recording is; the collector says so to the kernel side. Updates of processes come in every phase.
 */
enum recording_phase {
    PHASE_RECORDING = 0,
    PHASE_ATTACHING = 1, /* to running processes: no call is recorded yet, and no process is stopped */
    PHASE_CLOSED = 2,    /* the end: the same */
};

/* What the kernel side knows of a traced process; kept in the map `processes`. */
enum process_flags {
    PROCESS_TRACED = 1,
    PROCESS_CAN_LOAD = 2,       /* the collector wants to know of new libraries */
    PROCESS_WATCHED = 4,        /* and wants to probe them before they run */
    PROCESS_STARTING = 16,      /* since an exec, until its first libraries have been looked at */
    PROCESS_OWN_PROBES = 32,    /* it has probes that its children must be given as well */
    PROCESS_INLINE = 64,        /* it has inline probes, and so have the children that it forks */
    PROCESS_CHECK_CALLERS = 8,  /* code that can throw is mapped: see bpf/callers.h */
    PROCESS_NO_RETURNS = 128,   /* something in it looks at return addresses: none is replaced */
    PROCESS_SHARES_SLOTS = 256, /* the kernel side's own: WIRE_SLOTS_BACK is to come */
    PROCESS_SHARES_AREA = 512,  /* the same: it has forked, or was, since it got its inline probes' memory */
};

struct code_range {
    __u64 start, end;
};

#define PROCESS_RANGES 6

struct process_state {
    __u32 flags;  /* enum process_flags */
    __u32 worker; /* whose goroutines are held up (GO_WORKERS_MAX); its children's, too */
    struct code_range cannot_throw[PROCESS_RANGES]; /* for PROCESS_CHECK_CALLERS */
};

/* What a probe on a Go program stands at. R: goroutine, O: object, V: value, T: other; what is not said is
 * the first argument for O, the second for V and the one that acts for R. */
enum go_place_kind {
    GO_AT_SPAWN,        /* runtime.newproc; V: the function's entry */
    GO_AT_SPAWNED,      /* behind runtime.newproc1; O: the new goroutine, its second argument */
    GO_AT_EXECUTE,      /* runtime.execute; R */
    GO_AT_END,          /* runtime.goexit0; R */
    GO_AT_PARK,         /* runtime.gopark; V: reason */
    GO_AT_READY,        /* runtime.ready; O: the goroutine that may continue */
    GO_AT_QUEUE,        /* runtime.goschedImpl, goyield_m; R */
    GO_AT_OPERATION,    /* a function of the runtime or of package sync; T: where its caller returns to */
    GO_AT_SEND,         /* runtime.chansend; V: whether it may wait */
    GO_AT_RECV,         /* runtime.chanrecv; the same */
    GO_AT_SELECT,       /* runtime.selectgo; O: how many of the cases send, V: whether it may wait */
    GO_AT_LOCK,         /* the branch behind an inlined atomic instruction; O: the lock, V: slow */
    GO_AT_RESULT,       /* behind a call whose result is in a register */
    GO_AT_TIMER_STRUCT, /* runtime.addtimer (until 1.22); V: when, T: period; a struct wire_go_select, whose
                           case 0 has the timer's argument and the entry of its function, 0: they stay the
                           same */
    GO_AT_TIMER,        /* runtime.modtimer, (*timer).modify; the same */
    GO_AT_TIMER_STOP,   /* runtime.deltimer, (*timer).stop */
    GO_AT_TEST,         /* testing.tRunner; V: entry of the test function */
    GO_AT_PANIC,        /* runtime.gopanic */
    GO_AT_FATAL,        /* runtime.fatal, runtime.throw; O: the text's first eight bytes, V: its length */
    GO_AT_FATAL_PANIC,  /* runtime.fatalpanic */
    GO_AT_EXIT,         /* runtime.exit; V: status */
    GO_AT_DELAY,     /* where a goroutine can be held up; O: how often it was hit before in this execution, V:
                        its struct g */
    GO_AT_TIMER_RUN, /* (*timer).unlockAndRun, since 1.23; O: a timer that is due now */
    GO_AT_TIMER_RUN_SECOND, /* runtime.runOneTimer, until 1.22; V: the same */
    GO_AT_NOTIFY,           /* os/signal.Notify; O: the channel */
    GO_AT_BEHIND_GO, /* where runtime.newproc returns: the place behind a go statement; its records are of
                        GO_AT_DELAY */
};

#define MAX_GO_PROGRAMS 255 /* whose goroutines are recorded */
#define MAX_GO_PROBES 65536 /* on all of them */

/* A place; kept in the map `go_probes` by the index in the cookie. */
struct go_probe {
    __u8 kind;               /* enum go_place_kind */
    __u8 program;            /* whose layout, in `go_programs` */
    __u8 at_stack_check;     /* on the branch of a stack check: not when it is taken */
    __u8 place_in_code;      /* `place` is the instruction itself */
    __u8 base, index, scale; /* GO_AT_LOCK: struct go_fast_path of image/go/go_usage.h */
    __u8 condition, slow_taken;
    __u8 behind; /* GO_AT_DELAY: of a go statement, which is two places: hit 2N before it, 2N + 1 behind it */
    __u8 unused[2];
    __s32 displacement; /* to the lock itself */
    __u32 sp_offset;    /* how far the stack pointer lies below the return address */
};

/* Where goroutines are held up so that others go first (`go explore`): at the places GO_AT_DELAY. A place is
 * chosen at random, or is one of a list; the thread is sent SIGURG, for the thread holder
 * (collector/ptrace/thread_holder.h). */
#define GO_CHOICES_MAX 16
#define GO_WORKERS_MAX 16 /* executions beside each other; a power of two */

struct go_choice {
    __u32 probe, hit; /* a place, and how often it was hit before; with GO_HIT_FOLLOWING: since the choice
                         before this one in the list was taken */
};
#define GO_HIT_FOLLOWING 0x80000000u

struct go_schedule {
    __u64 seed;
    __u32 execution;    /* 0: no goroutine is held up */
    __u32 choice_count; /* 0: at random, with `chance` in 2^32 at each hit */
    __u32 chance;
    __s32 left;      /* so many more in this execution */
    __u32 stop_exit; /* the end of the process is held up, too */
    __u32 taken;     /* choices, as a set of bits; the kernel side's own, 0 at first */
    struct go_choice choices[GO_CHOICES_MAX];
    __u32 followed[GO_CHOICES_MAX]; /* hits of each with GO_HIT_FOLLOWING; the same */
};

/* Of a place GO_AT_DELAY, in the map `go_delays`. */
struct go_delay {
    __u64 hits[GO_WORKERS_MAX]; /* in the low half, of the execution in the high half */
};

/* Offsets in the runtime's structs. */
struct go_fields {
    __u32 g_goid, g_m, m_curg, unused;
};

static inline __u64 wire_sp(const struct wire_call *call)
{
    return (__u64)call->header.sp_high << 32 | call->sp_low;
}

/* What stood around the stack pointer of a program that was interrupted (bpf/stacks.bpf.c), from so many
 * bytes below it on, in pieces that are read or not. */
#define STACK_SAMPLE_BELOW 4096
#define STACK_SAMPLE_PIECES 6
#define STACK_SAMPLE_WORDS 128 /* of a piece */

struct stack_sample {
    __u32 tgid, unused;
    __u64 ip;
    __u64 words[STACK_SAMPLE_PIECES][STACK_SAMPLE_WORDS];
};

_Static_assert(sizeof(struct stack_sample) == 6160, "stack_sample");

#endif
