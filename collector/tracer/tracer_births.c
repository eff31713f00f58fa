/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes and threads that traced ones make. The maker stands still, before anything of what it has made has run: the
 * new one stands still as well, or will in a moment. Which is reported first is open.
 */
#include <linux/kcmp.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "collector/arch/record.h"
#include "collector/arch/thread_registers.h"
#include "collector/process/process.h"
#include "collector/tracer/tracer_state.h"

/* What is known of a birth. */
struct birth {
    pid_t tid;
    bool is_process, shares_memory, waits; /* waits: its maker, for its end or exec */
    uint64_t block, makers_block;
};

/* The first stop of a new thread has come, or comes. Returns false when it has been killed before. */
static bool await_first_stop(struct tracer *tracer, pid_t tid)
{
    struct early_stop **link = &tracer->early, *early;
    int status;

    while (*link && (*link)->tid != tid)
        link = &(*link)->next;
    early = *link;
    if (!early)
        return waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status);
    *link = early->next;
    free(early);
    return true;
}

static uint64_t block_of(pid_t tid)
{
    struct user_regs_struct registers;

    return ptrace(PTRACE_GETREGS, tid, NULL, &registers) ? 0 : registers_thread_block(&registers);
}

/* Whether a new process has its maker's memory. */
static bool shares_memory(pid_t maker, const struct birth *birth)
{
    long r = syscall(SYS_kcmp, maker, birth->tid, KCMP_VM, 0, 0);

    return r < 0 ? birth->waits : !r; /* without kcmp: vfork() is nearly all that does */
}

static bool read_memory(pid_t tid, uint64_t address, void *bytes, size_t size)
{
    struct iovec ours = {bytes, size}, theirs = {(void *)address, size};

    return process_vm_readv(tid, &ours, 1, &theirs, 1, 0) == (ssize_t)size;
}

/* How far a thread has come with its inline probes, as bpf/inline.h has it; 0: it has recorded nothing. */
static uint64_t cursor_of(pid_t tid, uint64_t block)
{
    struct {
        uint64_t cursor;
        uint32_t owner, loser;
    } slots;
    uint32_t id = 0;
    const uint32_t ids = (1u << AGENT_KEY_SHIFT) - 1;

    if (!read_memory(tid, block + AGENT_CURSOR, &slots, sizeof(slots)) ||
        !read_memory(tid, block + AGENT_TID, &id, sizeof(id)))
        return 0;
    if (!(slots.owner && !((slots.owner - id) & ids)) && !(slots.loser && !((slots.loser - id) & ids)))
        return 0;
    return slots.cursor;
}

/* ------------------------------------------------------------------------------------ slots that are lent */

static bool lends_slots(const struct traced_process *process, const struct birth *birth)
{
    return process->state.flags & PROCESS_INLINE && birth->is_process && birth->waits &&
           birth->shares_memory && birth->block == birth->makers_block;
}

static bool shares_block(const struct traced_process *process, const struct birth *birth)
{
    return process->state.flags & PROCESS_INLINE && birth->shares_memory &&
           birth->block == birth->makers_block && !lends_slots(process, birth);
}

static void put_lent(struct tracer *tracer, const struct traced_thread *maker, const struct birth *birth)
{
    const struct wire_slots record = {
        .header = {.kind = WIRE_SLOTS_SHARED, .tid = (uint32_t)birth->tid, .ns = clock_ns(CLOCK_MONOTONIC)},
        .parent_tid = (uint32_t)maker->tid,
        .followed = tracer->follow_children,
        .cursor = cursor_of(maker->tid, birth->makers_block),
    };

    record_queue_put(&tracer->queue, &record, sizeof(record));
}

void tracer_end_lending(struct tracer *tracer, struct traced_process *child)
{
    struct wire_inline record = {
        .header = {.kind = WIRE_SLOTS_BACK, .tid = (uint32_t)child->pid, .ns = clock_ns(CLOCK_MONOTONIC)}};

    if (!child->lent.parent)
        return;
    record.cursor = cursor_of(child->lent.parent, child->lent.block);
    child->lent = (struct lent_slots){0};
    record_queue_put(&tracer->queue, &record, sizeof(record));
}

void tracer_on_vfork_done(struct tracer *tracer, struct traced_thread *parent)
{
    struct traced_process *process = NULL, *next = NULL;

    HASH_ITER (hh, tracer->processes, process, next)
        if (process->lent.parent == parent->tid)
            tracer_end_lending(tracer, process);
}

/* ------------------------------------------------------------------------------------ births */

/* The id that the new thread's control block has: the kernel writes it before the first stop, if it is to write one. */
static uint32_t own_tid(const struct birth *birth)
{
    uint32_t id = 0;

    return read_memory(birth->tid, birth->block + AGENT_TID, &id, sizeof(id)) ? id : 0;
}

static void put_fork(struct tracer *tracer, const struct traced_thread *maker, const struct birth *birth,
                     bool held, bool shares)
{
    bool followed = !birth->is_process || tracer->follow_children;
    const struct wire_fork record = {
        .header = {.kind = WIRE_FORK,
                   .flags = held ? WIRE_HELD : 0,
                   .tid = (uint32_t)birth->tid,
                   .ns = clock_ns(CLOCK_MONOTONIC)},
        .tgid = (uint32_t)(birth->is_process ? birth->tid : maker->process->pid),
        .parent_tid = (uint32_t)maker->tid,
        .parent_tgid = (uint32_t)maker->process->pid,
        .shares = (birth->shares_memory ? FORK_SHARES_MEMORY : 0) | (shares ? FORK_SHARES_BLOCK : 0) |
                  (followed ? 0 : FORK_IS_LEFT),
        .thread_block = birth->block,
        .own_tid = maker->process->state.flags & PROCESS_INLINE ? own_tid(birth) : 0,
    };

    record_queue_put(&tracer->queue, &record, sizeof(record));
}

/* The process that a new thread is of: its maker's, or one with what is known of that. NULL: no memory. */
static struct traced_process *process_for(struct tracer *tracer, const struct traced_process *makers,
                                          const struct birth *birth)
{
    struct traced_process *process =
        birth->is_process ? tracer_add_process(tracer, birth->tid) : tracer_find_process(tracer, makers->pid);

    if (!process || !birth->is_process)
        return process;
    pthread_mutex_lock(&tracer->table);
    process->state = makers->state;
    pthread_mutex_unlock(&tracer->table);
    process->left = !tracer->follow_children;
    return process;
}

/* Notes it, and lets the new one continue or holds it. */
static void note(struct tracer *tracer, struct traced_thread *maker, const struct birth *birth)
{
    bool lends = lends_slots(maker->process, birth), shares = shares_block(maker->process, birth);
    bool followed = !birth->is_process || tracer->follow_children;
    bool held = shares && tracer->phase == PHASE_RECORDING;
    struct traced_process *process;
    struct traced_thread *thread;

    if (lends)
        put_lent(tracer, maker, birth);
    if (followed || shares)
        put_fork(tracer, maker, birth, held, shares);
    process = followed || held || lends ? process_for(tracer, maker->process, birth) : NULL;
    thread = process ? tracer_add_thread(tracer, process, birth->tid) : NULL;
    if (lends && process)
        process->lent = (struct lent_slots){.parent = maker->tid, .block = birth->makers_block};
    if (!thread) {
        ptrace(PTRACE_DETACH, birth->tid, NULL, NULL);
        return;
    }
    thread->parked = true;
    thread->held = held;
    thread->since_ns = clock_ns(CLOCK_MONOTONIC);
    tracer_go_on(thread);
}

void tracer_on_birth(struct tracer *tracer, struct traced_thread *maker, int event)
{
    unsigned long message = 0;
    struct birth birth = {0};

    if (ptrace(PTRACE_GETEVENTMSG, maker->tid, NULL, &message) || !message)
        return;
    birth.tid = (pid_t)message;
    if (!await_first_stop(tracer, birth.tid))
        return;
    birth.is_process = process_of_thread(birth.tid) == birth.tid;
    birth.waits = event == PTRACE_EVENT_VFORK;
    birth.shares_memory = !birth.is_process || shares_memory(maker->tid, &birth);
    birth.block = block_of(birth.tid);
    birth.makers_block = block_of(maker->tid);
    note(tracer, maker, &birth);
}
