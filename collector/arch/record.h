/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the stubs and the agent in a target write and the collector reads: the one layout of the fast backend.
 * Private to one run on one machine, like bpf/wire.h.
 *
 * The area of a process is two memory files, made by the collector. One has all that stubs and agent run by:
 * the head and the stubs, which the process has mapped within reach of its code (a `jmp` reaches 2 GiB), and
 * which no target can change (area.h). The other one has what they write: the counts and the chunks, mapped
 * anywhere. Nothing in it is taken for an address, a size or an index by threads that run stubs. A forked
 * child has the same mappings at the same addresses and uses the same chunks. A chunk belongs to one thread
 * until the collector has read it and put it back.
 *
 * A thread's slots lie in its thread control block, in the part of glibc's tcbhead_t that no version from
 * 2.23 on uses (__glibc_unused2, sysdeps/x86_64/nptl/tls.h). They need no allocation and a new thread has
 * zeros there, or what an earlier thread on the same stack has left, or in a forked child what its parent
 * had: for that they say whose they are, by a name.
 *
 * Who a thread is only the kernel knows: the id that the C library keeps in the thread control block is its
 * parent's in a child that a program makes by a system call of its own, and another one in a namespace. So
 * that id is used for no more than to tell threads of one process from each other. What tells processes from
 * each other is a key in a page that the kernel wipes in every forked child (MADV_WIPEONFORK), whatever it is
 * made by: a thread's name is its id and the key. Whoever takes slots says so to the kernel side, once, with
 * a ticket: by a uprobe in the agent (bpf/inline.h). Chunks bear the ticket, and whose that is the kernel has
 * seen. Where no BPF program can be loaded the agent's own word is taken for it (agent_counts.claims), whose
 * key tells which process that is; a program that changes it mixes up calls of its own threads.
 *
 * Where children are not recorded (agent_head.first_only) that page says which process is the first: all others
 * take no chunk. Their stubs count in their own slots what nobody reads.
 *
 * Threads that share one thread control block (CLONE_VM without CLONE_SETTLS) cannot be told from each other
 * by what they see of themselves. The kernel side tells of them when they are made; the collector marks the
 * block, and their calls are counted, not recorded.
 *
 * A stub preserves every register, every flag, the red zone and the stack above its pointer; registers and
 * flags that the function overwrites before it reads them need no preserving. Where a signal handler
 * interrupts it, the handler's own stubs find everything whole: what a stub saves is on the stack, and the
 * place for a record is taken by one instruction (xadd, which need not be locked: only the thread
 * writes its slots). Nested stubs may run a chunk full and take the next one in between, so the word that is
 * advanced says both where the record goes and whether there is room for it: no second word could be read of
 * the same moment.
 *
 *     (registers and flags saved, below the red zone, where the function may still read them)
 *     mov    %fs:AGENT_TID,%ecx
 *     add    KEY(%rip),%ecx             # the thread's name
 *     cmp    %fs:AGENT_OWNER,%ecx ; jne lost
 *     movabs $AGENT_ONE_RECORD,%rcx
 *     xadd   %rcx,%fs:AGENT_CURSOR ; jns slow
 *     mov    %ecx,%ecx                  # the low half: offset in the chunks
 *     add    HEAD.chunks(%rip),%rcx
 *     mov    HEAD.tick(%rip),%rdx       # in its upper 16 bits
 *     lea    FRAME(%rsp,%rdx),%rdx      # of the function: its return address is there
 *     mov    %rdx,8(%rcx)
 *     mov    FRAME(%rsp),%edx           # low half of the return address
 *     shl    $32,%rdx ; add $function,%rdx
 *     mov    %rdx,(%rcx)                # last: the record is whole when this is not 0
 *   back:
 *     (what was saved, the displaced instructions, the jump back)
 *   lost:
 *     cmp    %fs:AGENT_LOSER,%ecx ; jne slow
 *     mov    HEAD.tick(%rip),%rcx
 *     cmp    %fs:AGENT_LOST_IN,%rcx ; jne slow
 *     mov    %fs:AGENT_LOST_AT,%rcx
 *     incq   (%rcx) ; jmp back
 *   slow:
 *     mov    $function,%ecx
 *     lea    FRAME(%rsp),%rdx
 *     call   HEAD + AGENT_SLOW_OFFSET   # keeps all but rcx, rdx and the flags; writes the record or counts
 *     jmp    back                       # the call
 *
 * A thread that finds no chunk waits for one where the collector wants that (agent_head.waits): on a word of
 * the head, until the collector changes it, but no longer than AGENT_PATIENCE_NS from the collector's last
 * sign of life. Whoever waits makes a system call, the only one of the agent. Before, it passes another
 * uprobe, at which the kernel side looks whether a filter, a tracer or a handler of the program's own would
 * see that: then it marks the area (bpf/inline.h), in a page that the agent can read.
 *
 * A thread that does not wait, or has waited in vain, loses calls and counts them. It asks for a chunk once
 * in a tick: that is when the collector has put back what it had to read. Until then its calls cost it no
 * more than recording them would.
 *
 * Where the moment of each call is wanted, the time stamp counter goes to a word of its own behind the chunks
 * (agent_time_at), before the return address; the flags wait in the record meanwhile:
 *
 *     mov    %eax,4(%rcx)
 *     rdtsc ; shl $32,%rdx ; or %rdx,%rax
 *     mov    %rcx,%rdx ; shr %rdx ; add HEAD.times(%rip),%rdx
 *     mov    %rax,(%rdx)
 *     mov    4(%rcx),%eax
 *
 * HEAD is the address where the process has the head of its area mapped, near its code.
 */
#ifndef TRACECTL_COLLECTOR_ARCH_RECORD_H
#define TRACECTL_COLLECTOR_ARCH_RECORD_H

#include <stdint.h>

/* Offsets from %fs. */
#define AGENT_CURSOR 0x80u    /* u64: see below; all zero: full */
#define AGENT_OWNER 0x88u     /* u32: the thread that the slots are of, by its name */
#define AGENT_LOSER 0x8cu     /* u32: the same if it is losing calls; the other one is 0 then */
#define AGENT_LOST_AT 0x90u   /* u64: address of what a thread that is losing calls adds 1 to */
#define AGENT_LOST_IN 0x98u   /* u64: the tick in which it has asked for a chunk, as in the head */
#define AGENT_UNCOUNTED 0xa0u /* u64: where the calls go that come after the end of a recording */
#define AGENT_TICKET 0xa8u    /* u32: what it took the slots with */
#define AGENT_SHARED 0xacu    /* u32, the collector's: not 0 when several threads have this control block */
#define AGENT_NAME 0xb0u      /* u32: the name of its owner; the slots may have no owner meanwhile */
#define AGENT_SLOTS_END 0xb8u
#define AGENT_TID 0x2d0u /* u32: struct pthread's own: the id of the thread that runs, usually */

/* A name is the id, which has 22 bits, and the key of the process above it. */
#define AGENT_KEY_SHIFT 22
#define AGENT_KEYS 1023u /* so many are in use before the first one comes round again; 0 is none */

#define AGENT_CHUNK_BYTES 16384 /* 1020 records behind a head, struct agent_chunk */

/* In the high half of the cursor stands how many records still have room and one more, as a negative number,
 * in the low half the offset in the chunks of the next record: whoever takes a record has room for it if the
 * cursor is still negative then. A chunk that is full has -1 there, or as many more as have come on top, by
 * which the low half is too far, too. */
#define AGENT_ONE_RECORD ((1ull << 32) + sizeof(struct agent_record))

struct agent_record {
    uint32_t function;       /* 1 + index, with AGENT_EXIT where it returns; 0: not written (yet) */
    uint32_t return_address; /* its low half */
    uint64_t sp; /* bits 0 to 47: the stack pointer at the function's entry, which points to the return
                    address, and is the same at its RET; above: the tick */
};

#define AGENT_EXIT \
    (1u << 30) /* of agent_record.function; the bit above would be a sign to the stub's `add` */

static inline int agent_record_is_exit(const struct agent_record *record)
{
    return (record->function & AGENT_EXIT) != 0;
}

#define AGENT_SP_MASK ((1ull << 48) - 1)
#define AGENT_TICK_SHIFT 48

/* The offset in the chunks behind the last record that was given out; 0: none was ever. */
static inline uint32_t agent_cursor_offset(uint64_t cursor)
{
    uint32_t offset = (uint32_t)cursor;

    if (cursor >> 63)
        return offset;
    offset -= (uint32_t)(cursor >> 32) * (uint32_t)sizeof(struct agent_record);
    return offset ? offset - (uint32_t)sizeof(struct agent_record) : 0;
}

/* The stack pointer at the function's entry: it points to the return address. */
static inline uint64_t agent_record_sp(const struct agent_record *record)
{
    return record->sp & AGENT_SP_MASK;
}

/* A tick as it stands in a record: its low 16 bits, which are never all 0. */
static inline uint64_t agent_tick_word(uint32_t tick)
{
    return (uint64_t)tick << AGENT_TICK_SHIFT;
}

/* The address of a record's time: so that a stub has little to work out, `times` is where the times begin
 * less half the address of the first chunk. A record has twice the bytes of its time. */
static inline uint64_t agent_time_at(uint64_t times, uint64_t record)
{
    return times + record / 2;
}

/* Starts a chunk; records follow. `state` and what comes with it are the agent's, who has taken the chunk. */
struct agent_chunk {
    uint32_t ticket;       /* of the thread that it belongs to; 0: not said yet */
    uint32_t state;        /* enum agent_chunk_state */
    uint64_t lost_after;   /* calls of the thread behind the last record that found no chunk */
    uint64_t waited_after; /* nanoseconds that the thread has waited for another chunk */
    uint64_t unused[5];
};

enum agent_chunk_state {
    AGENT_CHUNK_OPEN = 0, /* up to its first record that is not written */
    AGENT_CHUNK_FULL = 1, /* every record has been given out; one that is 0 will be written yet, or never if a
                             handler has left by longjmp() */
    AGENT_CHUNK_UNUSED = 2 /* was taken for nothing: a handler took another one meanwhile */
};

/* The head of the area: the target may only read it. */
struct agent_head {
    char magic[8]; /* AGENT_MAGIC */
    uint32_t version;
    uint32_t quiet;  /* no chunk is to be taken any more: the recording has ended */
    uint64_t chunks; /* address of the first chunk in the target */
    uint32_t chunk_bytes, chunk_count;
    uint32_t collector; /* process id, of the reader */
    uint32_t area;      /* its number, among those of the collector */
    uint64_t data_file; /* inode number of the data file */
    uint64_t since;     /* CLOCK_MONOTONIC when the process was patched and stood still */
    uint64_t times;     /* 0: none are kept; else see agent_time_at() */
    uint64_t tick __attribute__((aligned(64))); /* agent_tick_word() of the tick, which counts up while the
                                                    collector is there */
    uint64_t first_key; /* address of the key (struct agent_key) that the others in a process follow */
    uint64_t given __attribute__((aligned(64))); /* so many entries of `free` have been made */
    uint64_t alive; /* CLOCK_MONOTONIC, nanoseconds: the collector's last sign of life */
    uint32_t wakes; /* what threads wait on: changes when they are to look for a chunk again */
    uint32_t waits; /* threads may wait */
    uint32_t
        starved; /* every chunk is in use by a thread, and none will be put back before one of them ends */
    uint32_t first_only; /* processes that are forked from the first one are not recorded */
    uint32_t free[] __attribute__((aligned(64))); /* numbers of chunks, entry i at i % chunk_count */
};

/* Who has taken slots with a ticket, as the thread sees itself: its name. The ticket is written last. */
struct agent_claim_note {
    uint32_t ticket, name;
};
#define AGENT_CLAIMS 4096u

/* Before the chunks: what agents count, and any process that has the area mapped may change. */
struct agent_counts {
    uint64_t taken;         /* so many entries of `free` have been taken */
    uint64_t unplaced;      /* calls lost of threads that never had a chunk */
    uint64_t shared;        /* of threads that share a thread control block */
    uint32_t keys, tickets; /* so many have been given out */
    uint32_t waiting;       /* a thread waits, or has waited since the collector set this to 0 */
    struct agent_claim_note claims[AGENT_CLAIMS] __attribute__((aligned(64))); /* by ticket % AGENT_CLAIMS */
};
#define AGENT_COUNTS_BYTES 36864u

#define AGENT_MAGIC "tracectl"
#define AGENT_CODE_NAME "agent of " AGENT_MAGIC
#define AGENT_DATA_NAME AGENT_MAGIC " rings" /* of the data file */
/* In the key's page: memory of the process's own behind the head, which a forked child has zeros in. Where
 * the head is mapped more than once, for stubs near the program and near libraries, each place has such a
 * page, and the first of them decides. */
struct agent_key {
    uint32_t key;   /* from 1 << AGENT_KEY_SHIFT on; 0: no call here since the process was forked */
    uint32_t first; /* 0: the process was forked since the area was made */
};

#define AGENT_VERSION 8

/* A thread that waits for a chunk gives up, and loses calls, this long after the collector's last sign of
 * life. */
#define AGENT_PATIENCE_NS 100000000ull

/* What is mapped near the code, by offsets from the head: the key's page, that of the kernel side (of a BPF
 * map, if threads may wait), the agent and the stubs behind it. The agent is a private mapping of a file that
 * all areas of a collector have in common, for uprobes are only put into such; the head is of the area's code
 * file, the stubs are of a file of their own. */
#define AGENT_HEAD_BYTES 32768u
#define AGENT_CHUNKS_MAX 7168u
#define AGENT_KEY_OFFSET AGENT_HEAD_BYTES
#define AGENT_KEY_BYTES 4096u
#define AGENT_FILTERED_OFFSET (AGENT_KEY_OFFSET + AGENT_KEY_BYTES) /* of the kernel side's marks */
#define AGENT_FILTERED_BYTES \
    4096u /* of 8 bytes each: not 0 if threads of an area with that number must not wait */
#define AGENT_SLOW_OFFSET (AGENT_FILTERED_OFFSET + AGENT_FILTERED_BYTES) /* of the agent's entry */
#define AGENT_CLAIM 128u       /* of a uprobe's place, in the agent */
#define AGENT_ASK 144u         /* of the other one's */
#define AGENT_CODE_BYTES 4096u /* room for the agent */
#define AGENT_STUBS_OFFSET (AGENT_SLOW_OFFSET + AGENT_CODE_BYTES)

_Static_assert(sizeof(struct agent_record) == 2 * sizeof(uint64_t), "agent_record");
_Static_assert(sizeof(struct agent_chunk) == 64, "agent_chunk");
_Static_assert(__builtin_offsetof(struct agent_head, chunks) == 16, "agent_head.chunks");
_Static_assert(__builtin_offsetof(struct agent_head, times) == 56, "agent_head.times");
_Static_assert(__builtin_offsetof(struct agent_head, tick) == 64, "agent_head.tick");
_Static_assert(__builtin_offsetof(struct agent_head, free) == 192, "agent_head.free");
_Static_assert(sizeof(struct agent_counts) <= AGENT_COUNTS_BYTES, "agent_counts");
_Static_assert(sizeof(struct agent_head) + AGENT_CHUNKS_MAX * sizeof(uint32_t) <= AGENT_HEAD_BYTES,
               "agent_head");

#endif
