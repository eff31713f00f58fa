/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/go/watch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "collector/arch/thread_registers.h"
#include "collector/go/watched_process.h"
#include "collector/ptrace/go_handoff.h"
#include "collector/ptrace/thread_holder.h"

enum {
    STOPS = 1024,     /* more than can be held at once */
    QUIET_ROUNDS = 3, /* nothing must have come for so many before all goroutines count as stuck */
};
#define HELD_NS_MAX (2ull * GO_HOLD_LONGEST_NS) /* whatever happens here */
#define STOP_AWAITED_NS 20000000u /* a signal may get lost on its way: see thread_holder_options.pass_on */
#define TIMER_GRACE_NS 2000000u   /* a timer that was due so long ago has let no goroutine run */

/* A thread that is, or is about to be, held. */
struct hold {
    pid_t tid, pid;
    bool told;    /* the kernel side has announced it */
    bool stopped; /* the thread holder holds it */
    bool at_end;
    bool handed_off;   /* at the end: others have its processor, or cannot have it */
    uint64_t g;        /* address of the goroutine's struct g; 0: not known */
    uint64_t since_ns; /* CLOCK_MONOTONIC */
    unsigned quiet;    /* rounds */
};

/* A thread that the thread holder holds from now on. */
struct stop {
    pid_t tid;
    uint64_t g; /* what its register for the current goroutine says */
};

struct go_watch {
    struct go_watch_options options;
    struct go_watch_observer observer;
    struct thread_holder *holder;
    int wake;
    struct watched_process *processes;
    struct hold holds[THREAD_HOLDER_HOLDS_MAX];
    size_t hold_count;
    /* Written by the thread holder. */
    struct stop stops[STOPS];
    uint64_t stops_written, stops_read;
};

/* ------------------------------------------------------------------------------------ the thread holder's
 * part
 */

static uint64_t on_stop(void *context, pid_t tid, const struct thread_holder_stop *stop)
{
    struct go_watch *watch = context;
    uint64_t one = 1, at = __atomic_load_n(&watch->stops_written, __ATOMIC_RELAXED);
    struct user_regs_struct registers;

    if (thread_holder_registers(stop, &registers))
        return 0; /* it has been killed */
    watch->stops[at % STOPS] = (struct stop){.tid = tid, .g = registers_goroutine(&registers)};
    __atomic_store_n(&watch->stops_written, at + 1, __ATOMIC_RELEASE);
    if (write(watch->wake, &one, sizeof(one)) < 0)
        return 0; /* never: the counter would have to be full */
    return HELD_NS_MAX;
}

int go_watch_new(const struct go_watch_options *options, const struct go_watch_observer *observer,
                 struct go_watch **ret_watch, struct error *err)
{
    struct go_watch *watch = calloc(1, sizeof(*watch));
    const struct thread_holder_options holder = {.stopped = on_stop, .context = watch, .pass_on = true};
    int r;

    if (!watch)
        return error_no_memory(err), -ENOMEM;
    watch->options = *options;
    watch->observer = *observer;
    watch->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r = watch->wake < 0 ? error_set(err, -errno, NULL, "cannot wait for stops")
                        : thread_holder_new(&holder, &watch->holder, err);
    if (r) {
        go_watch_free(watch);
        return r;
    }
    *ret_watch = watch;
    return 0;
}

static void forget(struct go_watch *watch, struct watched_process *process)
{
    HASH_DEL(watch->processes, process);
    watched_process_free(process);
}

void go_watch_free(struct go_watch *watch)
{
    struct watched_process *process = NULL, *next = NULL;

    if (!watch)
        return;
    thread_holder_free(watch->holder);
    HASH_ITER (hh, watch->processes, process, next)
        forget(watch, process);
    if (watch->wake >= 0)
        close(watch->wake);
    free(watch);
}

pid_t go_watch_thread_holder(const struct go_watch *watch)
{
    return thread_holder_pid(watch->holder);
}

int go_watch_seize(struct go_watch *watch, pid_t pid, struct error *err)
{
    return thread_holder_seize(watch->holder, pid, err);
}

int go_watch_fd(const struct go_watch *watch)
{
    return watch->wake;
}

/* ------------------------------------------------------------------------------------ processes */

static struct watched_process *find(const struct go_watch *watch, pid_t pid)
{
    struct watched_process *process;

    HASH_FIND(hh, watch->processes, &pid, sizeof(pid), process);
    return process;
}

/* The process, watched from now on; NULL: no memory. */
static struct watched_process *meet(struct go_watch *watch, const struct go_process *met)
{
    struct watched_process *process = find(watch, met->pid);

    if (process || watched_process_new(met, &watch->observer, &process))
        return process;
    HASH_ADD(hh, watch->processes, pid, sizeof(process->pid), process);
    return process;
}

void go_watch_hold_by(struct go_watch *watch, pid_t pid, const struct go_hold_rule *rule)
{
    struct watched_process *process = find(watch, pid);

    if (process)
        process->rule = *rule;
}

/* ------------------------------------------------------------------------------------ holds */

/* The hold of a thread, a new one if it has none; NULL: there are too many. */
static struct hold *hold_of(struct go_watch *watch, pid_t tid)
{
    struct hold *hold = NULL;

    for (size_t i = 0; i < watch->hold_count; i++)
        if (watch->holds[i].tid == tid)
            return &watch->holds[i];
    if (watch->hold_count == THREAD_HOLDER_HOLDS_MAX)
        return NULL;
    hold = &watch->holds[watch->hold_count++];
    *hold = (struct hold){.tid = tid, .since_ns = clock_ns(CLOCK_MONOTONIC)};
    return hold;
}

static void drop_hold(struct go_watch *watch, struct hold *hold)
{
    *hold = watch->holds[--watch->hold_count];
}

static void announce(struct go_watch *watch, const struct watched_process *process,
                     const struct process_event *event)
{
    struct hold *hold = hold_of(watch, (pid_t)event->tid);

    if (!hold)
        return;
    hold->pid = process->pid;
    hold->told = true;
    hold->at_end = event->kind == GO_EVENT_EXIT;
    if (!hold->at_end)
        hold->g = event->object;
}

static void take_stops(struct go_watch *watch)
{
    uint64_t written = __atomic_load_n(&watch->stops_written, __ATOMIC_ACQUIRE), told;

    if (read(watch->wake, &told, sizeof(told)) < 0 && watch->stops_read == written)
        return;
    while (watch->stops_read < written) {
        const struct stop *stop = &watch->stops[watch->stops_read++ % STOPS];
        struct hold *hold = hold_of(watch, stop->tid);

        if (!hold)
            continue;
        hold->stopped = true;
        if (!hold->told || hold->at_end)
            hold->g = stop->g; /* of a delay, the place's own word comes with its event */
    }
}

/* How many threads of a process stand still that a hold need not wait for: the end of the process waits for
 * goroutines that are held up before an operation, these wait for none that is held. */
static size_t held_beside(const struct go_watch *watch, const struct hold *hold)
{
    size_t count = 0;

    for (size_t i = 0; i < watch->hold_count; i++)
        count += watch->holds[i].pid == hold->pid && watch->holds[i].stopped &&
                 (watch->holds[i].at_end || !hold->at_end);
    return count;
}

/* Whether the hold outlasts the timer that is due next. */
static bool waits_for_timer(const struct go_watch *watch, const struct hold *hold,
                            const struct watched_process *process)
{
    uint64_t due_ns =
        hold->at_end || process->rule.outlasts_timers ? go_replay_next_timer(process->replay) : 0;
    uint64_t now = clock_ns(CLOCK_REALTIME), held = clock_ns(CLOCK_MONOTONIC) - hold->since_ns;

    if (!due_ns)
        return false;
    if (hold->at_end)
        return due_ns <= now + watch->options.drain_ns / 2;
    return due_ns + TIMER_GRACE_NS > now && due_ns < now - held + process->rule.limit_ns;
}

/* Whether all others in the process have come as far as they can. */
static bool others_rest(struct go_watch *watch, const struct hold *hold,
                        const struct watched_process *process)
{
    struct go_replay_totals totals = go_replay_totals(process->replay);

    if (totals.has_fatal)
        return true;
    if (totals.runnable > held_beside(watch, hold))
        return false;
    return !waits_for_timer(watch, hold, process);
}

/* Whether another goroutine of the process has been held up for longer, which continues before this one. */
static bool comes_later(const struct go_watch *watch, const struct hold *hold)
{
    for (size_t i = 0; !hold->at_end && i < watch->hold_count; i++) {
        const struct hold *other = &watch->holds[i];

        if (other->pid == hold->pid && other->stopped && !other->at_end && other->since_ns < hold->since_ns)
            return true;
    }
    return false;
}

/* Whether a hold is over. */
static bool is_over(struct go_watch *watch, struct hold *hold, uint64_t now, bool idle)
{
    const struct watched_process *process = hold->told ? find(watch, hold->pid) : NULL;

    if (hold->told && !process)
        return true;
    if (!hold->told || !hold->stopped)
        return now - hold->since_ns > STOP_AWAITED_NS;
    if (now - hold->since_ns > (hold->at_end ? watch->options.drain_ns : process->rule.limit_ns))
        return true;
    hold->quiet = idle && others_rest(watch, hold, process) ? hold->quiet + 1 : 0;
    return hold->quiet >= QUIET_ROUNDS && !comes_later(watch, hold);
}

/* Lets a thread continue. If others could still run then, the goroutine goes to the end of the queue, as
 * runtime.preemptone would have it: with GOMAXPROCS=1 no other goroutine has run meanwhile. */
static void end_hold(struct go_watch *watch, const struct hold *hold, const struct watched_process *process)
{
    const int32_t *offsets = process ? go_program_layout(process->process.file)->offsets : NULL;
    struct thread_holder_preemption where = {.g = hold->g};

    if (!offsets || hold->at_end || !hold->g || offsets[GO_G_PREEMPT] < 0 || offsets[GO_G_STACKGUARD0] < 0 ||
        others_rest(watch, hold, process)) {
        thread_holder_let_go(watch->holder, hold->tid);
        return;
    }
    where.preempt_offset = (uint32_t)offsets[GO_G_PREEMPT];
    where.stackguard_offset = (uint32_t)offsets[GO_G_STACKGUARD0];
    thread_holder_preempt(watch->holder, hold->tid, &where);
}

/* The end of the process waits for the others, those in the queue of the ending thread's processor as well.
 */
static void hand_off(struct hold *hold, const struct watched_process *process)
{
    if (!process || !hold->at_end || !hold->told || !hold->stopped || hold->handed_off)
        return;
    hold->handed_off = true;
    (void)go_hand_off(hold->tid, hold->g,
                      go_program_layout(process->process.file)); /* or they run on others */
}

static void check_holds(struct go_watch *watch, uint64_t now, bool idle)
{
    for (size_t i = 0; i < watch->hold_count;) {
        struct hold *hold = &watch->holds[i];
        struct watched_process *process = find(watch, hold->pid);

        hand_off(hold, process);
        if (!is_over(watch, hold, now, idle)) {
            i++;
            continue;
        }
        if (process && hold->at_end)
            process->drained_ns = now - hold->since_ns;
        if (hold->stopped)
            end_hold(watch, hold, process);
        drop_hold(watch, hold);
    }
}

/* ------------------------------------------------------------------------------------ programs that never
 * end */

/* `idle`: all that has happened has been read. */
static void end_hopeless(struct go_watch *watch, uint64_t now, bool idle)
{
    struct watched_process *process = NULL, *next = NULL;
    uint64_t realtime = idle ? clock_ns(CLOCK_REALTIME) : 0;

    HASH_ITER (hh, watch->processes, process, next) {
        if (process->end != GO_END_OWN)
            continue;
        if (realtime > process->seen_ns)
            process->seen_ns = realtime;
        if (watched_process_is_deadlocked(process, watch->options.patience_ns, now))
            process->end = GO_END_DEADLOCK;
        else if (watch->options.limit_ns && now - process->begun_ns > watch->options.limit_ns)
            process->end = GO_END_LIMIT;
        if (process->end != GO_END_OWN)
            kill(process->pid, SIGKILL);
    }
}

bool go_watch_round(struct go_watch *watch, bool idle)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC);

    take_stops(watch);
    check_holds(watch, now, idle);
    end_hopeless(watch, now, idle);
    return watch->hold_count;
}

/* ------------------------------------------------------------------------------------ the observer */

static int on_event(void *context, const struct go_process *met, const struct process_event *event)
{
    struct go_watch *watch = context;
    struct watched_process *process = meet(watch, met);
    int r = process ? go_replay_event(process->replay, event) : -ENOMEM;

    if (r)
        return r;
    if (event->ns > process->seen_ns)
        process->seen_ns = event->ns;
    if (event->kind == GO_EVENT_DELAY || (event->kind == GO_EVENT_EXIT && watch->options.drain_ns))
        announce(watch, process, event);
    process->delays += event->kind == GO_EVENT_DELAY;
    return watch->observer.event ? watch->observer.event(watch->observer.context, met, process->replay, event)
                                 : 0;
}

static int on_end(void *context, const struct go_process *met, int exit_status)
{
    struct go_watch *watch = context;
    struct watched_process *process = find(watch, met->pid);
    struct go_replay_totals totals;
    struct go_verdict verdict = {0};
    struct go_watched watched;
    int r;

    if (!process)
        return 0;
    r = go_replay_end(process->replay);
    if (!r)
        r = watched_process_judge(process, exit_status, &verdict);
    totals = go_replay_totals(process->replay);
    watched = (struct go_watched){
        .process_id = met->process_id,
        .number = met->number,
        .end = process->end,
        .verdict = &verdict,
        .events = totals.events,
        .lost = totals.lost,
        .delays = process->delays,
        .drained_ns = process->drained_ns,
    };
    if (!r && watch->observer.end)
        r = watch->observer.end(watch->observer.context, met, &watched);
    go_verdict_release(&verdict);
    forget(watch, process);
    return r;
}

struct go_observer go_watch_observer(struct go_watch *watch)
{
    return (struct go_observer){.event = on_event, .end = on_end, .context = watch};
}
