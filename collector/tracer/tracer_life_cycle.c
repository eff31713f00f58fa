/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tracer as a life-cycle source (collector/backend/life_cycle_source.h). */
#include <errno.h>

#include "base/error.h"
#include "collector/tracer/tracer_state.h"

/* ------------------------------------------------------------------------------------ traced processes */

struct addition {
    pid_t pid;
    unsigned worker;
};

static int add(struct tracer *tracer, void *argument)
{
    const struct addition *addition = argument;
    struct traced_process *process = tracer_add_process(tracer, addition->pid);
    int r;

    if (!process)
        return -ENOMEM;
    process->state.worker = addition->worker;
    r = tracer_seize(tracer, process);
    if (r && !process->threads) /* it goes with its last thread, which is to be one */
        tracer_forget_process(tracer, process);
    return r;
}

static int add_process(struct life_cycle_source *source, pid_t pid, unsigned worker, struct error *err)
{
    struct addition addition = {pid, worker};
    int r = tracer_ask(tracer_of(source), add, &addition);

    if (r == -EPERM)
        return error_set(err, r, "it is another user's, or a debugger traces it", "cannot trace process %d",
                         (int)pid);
    return r ? error_set(err, r, NULL, "cannot trace process %d", (int)pid) : 0;
}

static bool process(const struct life_cycle_source *source, pid_t pid, struct process_state *ret_state)
{
    struct tracer *tracer = tracer_of(source);
    const struct traced_process *found;

    pthread_mutex_lock(&tracer->table);
    found = tracer_find_process(tracer, pid);
    if (found)
        *ret_state = found->state;
    pthread_mutex_unlock(&tracer->table);
    return found;
}

static int set_process(struct life_cycle_source *source, pid_t pid, const struct process_state *state)
{
    struct tracer *tracer = tracer_of(source);
    struct traced_process *found;

    pthread_mutex_lock(&tracer->table);
    found = tracer_find_process(tracer, pid);
    if (found) {
        unsigned worker = found->state.worker;

        found->state = *state;
        found->state.worker = worker;
    }
    pthread_mutex_unlock(&tracer->table);
    return found ? 0 : -ENOENT;
}

static void enter(struct life_cycle_source *source, enum recording_phase phase)
{
    tracer_of(source)->phase = phase;
}

/* ------------------------------------------------------------------------------------ records */

static int fd(const struct life_cycle_source *source)
{
    return tracer_of(source)->queue.wakeup;
}

static int consume(struct life_cycle_source *source, unsigned limit, wire_handler handle, void *context)
{
    return record_queue_consume(&tracer_of(source)->queue, limit, handle, context);
}

static void want_all(struct life_cycle_source *source)
{
    (void)source; /* it keeps nothing back */
}

static struct wire_losses consume_losses(struct life_cycle_source *source, uint32_t tid)
{
    (void)source;
    (void)tid;
    return (struct wire_losses){0};
}

static struct life_cycle_losses losses(const struct life_cycle_source *source)
{
    struct tracer *tracer = tracer_of(source);

    return (struct life_cycle_losses){.life_cycle = record_queue_lost(&tracer->queue) + tracer->gone};
}

static uint64_t bytes(const struct life_cycle_source *source)
{
    return record_queue_bytes(&tracer_of(source)->queue);
}

/* ------------------------------------------------------------------------------------ what is watched */

static int watch_linker(struct life_cycle_source *source, int file, const char *name,
                        const struct linker_sites *linker, pid_t pid, struct error *err)
{
    (void)source, (void)file, (void)name, (void)linker, (void)pid, (void)err;
    return 0;
}

static int watch_agent(struct life_cycle_source *source, int file, unsigned long offset, struct error *err)
{
    (void)source, (void)file, (void)offset, (void)err;
    return 0; /* the agent leaves word of it */
}

static int number_area(struct life_cycle_source *source, uint32_t *ret_area)
{
    (void)source, (void)ret_area;
    return -ENOTSUP;
}

static int set_area(struct life_cycle_source *source, pid_t pid, uint32_t area)
{
    (void)source, (void)pid;
    return area ? -E2BIG : 0; /* its threads must not wait: a filter would not be seen */
}

static int filtered(const struct life_cycle_source *source)
{
    (void)source;
    return -1;
}

static int watch_rights(struct life_cycle_source *source, const struct probe_sites *sites, struct error *err)
{
    (void)source, (void)sites, (void)err;
    return 0;
}

/* Copies of code are not: most programs that can map memory never do it for that. */
static int watch_rewrites(struct life_cycle_source *source, const struct probe_sites *sites, pid_t pid,
                          struct error *err)
{
    size_t count = 0;

    (void)source, (void)pid;
    for (size_t i = 0; i < sites->count; i++)
        count += sites->cookies[i] != REWRITE_BY_MMAP;
    return count ? error_say(err, -ENOTSUP, "it may change its code, which ptrace does not see") : 0;
}

/* ------------------------------------------------------------------------------------ held processes */

static int guard(struct life_cycle_source *source, struct error *err)
{
    (void)source, (void)err;
    return 0; /* the tracer is one, and so is the kernel */
}

struct held_list {
    pid_t *pids;
    size_t count, capacity;
};

static int list_held(struct tracer *tracer, void *argument)
{
    struct traced_thread *thread = NULL, *next = NULL;
    struct held_list *list = argument;

    HASH_ITER (hh, tracer->threads, thread, next)
        if (thread->held && list->count < list->capacity)
            list->pids[list->count++] = thread->process->pid;
    return 0;
}

static size_t held(const struct life_cycle_source *source, pid_t *pids, size_t capacity)
{
    struct held_list list = {.pids = pids, .capacity = capacity};

    return tracer_ask(tracer_of(source), list_held, &list) ? 0 : list.count;
}

static int release_held(struct tracer *tracer, void *argument)
{
    const pid_t *pid = argument;
    struct traced_process *found = tracer_find_process(tracer, *pid);

    return found ? (int)tracer_release(tracer, found) : 0;
}

static bool release(struct life_cycle_source *source, pid_t pid)
{
    return tracer_ask(tracer_of(source), release_held, &pid) > 0;
}

static bool end_wait(struct life_cycle_source *source, pid_t tid, bool *ret_stopped)
{
    (void)source, (void)tid; /* no thread waits by itself */
    *ret_stopped = false;
    return false;
}

const struct life_cycle_operations tracer_operations = {
    .add_process = add_process,
    .process = process,
    .set_process = set_process,
    .enter = enter,
    .fd = fd,
    .consume = consume,
    .want_all = want_all,
    .consume_losses = consume_losses,
    .losses = losses,
    .bytes = bytes,
    .watch_linker = watch_linker,
    .watch_claims = watch_agent,
    .watch_asks = watch_agent,
    .filtered = filtered,
    .number_area = number_area,
    .set_area = set_area,
    .watch_rights = watch_rights,
    .watch_rewrites = watch_rewrites,
    .guard = guard,
    .held = held,
    .release = release,
    .end_wait = end_wait,
};
