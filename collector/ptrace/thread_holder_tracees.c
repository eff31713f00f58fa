/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every request to a stopped thread may fail with ESRCH, since SIGKILL ends it at any moment, stopped or not:
 * its end is reported by wait(2) like any other, and that is where it is dealt with. So results of requests
 * are not looked at.
 *
 * Nothing is remembered about threads but the holds: what a stop is about is in its status.
 */
#include "collector/ptrace/thread_holder_tracees.h"

#include <errno.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "collector/process/process.h"
#include "collector/ptrace/go_preempt.h"
#include "collector/ptrace/passed_signal.h"

/* Not PTRACE_O_EXITKILL: the target shall outlive the thread holder. */
#define OPTIONS (PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC)

static void go_on(pid_t tid, int signal)
{
    ptrace(PTRACE_CONT, tid, NULL, (void *)(intptr_t)signal);
}

/* ------------------------------------------------------------------------------------------------- holds */

static struct thread_holder_hold *find_hold(struct thread_holder *holder, pid_t tid)
{
    for (size_t i = 0; i < holder->hold_count; i++)
        if (holder->holds[i].tid == tid)
            return &holder->holds[i];
    return NULL;
}

/* Takes a hold off the list. */
static void forget(struct thread_holder *holder, struct thread_holder_hold *hold)
{
    holder->counts.held_ns += clock_ns(CLOCK_MONOTONIC) - hold->since;
    *hold = holder->holds[--holder->hold_count];
}

static void forget_thread(struct thread_holder *holder, pid_t tid)
{
    struct thread_holder_hold *hold = find_hold(holder, tid);

    if (!hold)
        return;
    forget(holder, hold);
    holder->counts.ended++;
}

/* The signal with which a thread continues after its stop. */
static int signal_for(struct thread_holder *holder, const struct thread_holder_hold *hold)
{
    int own = holder->options.pass_on ? hold->signal : 0;

    if (!hold->preemption.g)
        return own;
    if (hold->signal != SIGURG || go_preempt_request(hold->tid, &hold->preemption)) {
        holder->counts.preempt_failed++;
        return own;
    }
    holder->counts.preempted++;
    return SIGURG;
}

static void end_hold(struct thread_holder *holder, struct thread_holder_hold *hold)
{
    go_on(hold->tid, signal_for(holder, hold));
    forget(holder, hold);
}

void tracees_let_go(struct thread_holder *holder, pid_t tid,
                    const struct thread_holder_preemption *preemption)
{
    struct thread_holder_hold *hold = find_hold(holder, tid);

    if (!hold)
        return;
    if (preemption)
        hold->preemption = *preemption;
    holder->counts.let_go++;
    end_hold(holder, hold);
}

uint64_t tracees_end_overdue(struct thread_holder *holder, uint64_t now)
{
    uint64_t next = UINT64_MAX;

    for (size_t i = holder->hold_count; i-- > 0;) { /* backwards: the last one takes a gone one's place */
        struct thread_holder_hold *hold = &holder->holds[i];

        if (hold->end <= now) {
            holder->counts.timed_out++;
            end_hold(holder, hold);
        } else if (hold->end < next) {
            next = hold->end;
        }
    }
    return next;
}

void tracees_detach_held(struct thread_holder *holder)
{
    while (holder->hold_count) {
        struct thread_holder_hold *hold = &holder->holds[holder->hold_count - 1];

        ptrace(PTRACE_DETACH, hold->tid, NULL, (void *)(intptr_t)signal_for(holder, hold));
        forget(holder, hold);
        holder->counts.ended++;
    }
}

/* ----------------------------------------------------------------------------------------------- signals */

static bool is_mine(const struct thread_holder *holder, const siginfo_t *signal)
{
    const struct thread_holder_options *options = &holder->options;

    if (options->is_mine)
        return options->is_mine(options->context, signal);
    return signal->si_signo == SIGURG && signal->si_code == SI_KERNEL;
}

/* Asks what to do with a thread that the thread holder's signal has stopped, and does it. */
static void on_own_signal(struct thread_holder *holder, pid_t tid, const siginfo_t *signal)
{
    const struct thread_holder_stop stop = {tid, *signal};
    struct thread_holder_hold hold = {
        .tid = tid, .signal = signal->si_signo, .since = clock_ns(CLOCK_MONOTONIC)};
    uint64_t ns;

    holder->counts.stops++;
    holder->asked = &hold;
    ns = holder->options.stopped(holder->options.context, tid, &stop);
    holder->asked = NULL;
    if (ns == THREAD_HOLDER_NOT_MINE) {
        holder->counts.foreign += signal->si_signo == SIGURG;
        holder->counts.signals++;
        go_on(tid, signal->si_signo);
        return;
    }
    if (ns && holder->hold_count == THREAD_HOLDER_HOLDS_MAX) {
        holder->counts.refused++;
        ns = 0;
    }
    if (!ns) {
        go_on(tid, signal_for(holder, &hold));
        return;
    }
    hold.end = hold.since + ns < hold.since ? UINT64_MAX : hold.since + ns;
    holder->holds[holder->hold_count++] = hold;
    holder->counts.holds++;
}

/* A thread is about to get a signal. */
static void on_signal(struct thread_holder *holder, pid_t tid, int number)
{
    siginfo_t signal;

    if (ptrace(PTRACE_GETSIGINFO, tid, NULL, &signal))
        return;
    if (is_mine(holder, &signal)) {
        on_own_signal(holder, tid, &signal);
        return;
    }
    holder->counts.foreign += number == SIGURG;
    holder->counts.signals++;
    passed_signal_go_on(tid, number);
}

/* ------------------------------------------------------------------------------------------------- stops */

static bool stops_the_process(int signal)
{
    return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

/* After exec by another thread than the main one that thread has the process's number: nothing comes of its
 * old one any more. */
static void on_exec(struct thread_holder *holder, pid_t tid)
{
    unsigned long former;

    if (!ptrace(PTRACE_GETEVENTMSG, tid, NULL, &former))
        forget_thread(holder, (pid_t)former);
}

static void on_status(struct thread_holder *holder, pid_t tid, int status)
{
    int event = status >> 16;

    if (!WIFSTOPPED(status)) {
        forget_thread(holder, tid);
    } else if (event == PTRACE_EVENT_STOP && stops_the_process(WSTOPSIG(status))) {
        ptrace(PTRACE_LISTEN, tid, NULL, NULL); /* it stays stopped until SIGCONT */
    } else if (event) {
        if (event == PTRACE_EVENT_EXEC)
            on_exec(holder, tid);
        go_on(tid, 0);
    } else {
        on_signal(holder, tid, WSTOPSIG(status));
    }
}

bool tracees_handle_one(struct thread_holder *holder)
{
    int status;
    pid_t tid = waitpid(-1, &status, __WALL | WNOHANG);

    if (tid <= 0)
        return false;
    on_status(holder, tid, status);
    return true;
}

/* -------------------------------------------------------------------------------------------------- seize */

/* Seizes the threads that are there. Returns how many, or a negative errno when none was to be had. */
static int seize_threads(pid_t pid)
{
    AUTO_FREE pid_t *tids = NULL;
    size_t count;
    int seized = 0, reason = 0, r = process_threads(pid, &tids, &count, NULL);

    for (size_t i = 0; !r && i < count; i++) {
        if (!ptrace(PTRACE_SEIZE, tids[i], NULL, (void *)OPTIONS))
            seized++;
        else if (!reason)
            reason = -errno;
    }
    return r || seized ? (r ? r : seized) : reason;
}

int tracees_seize(pid_t pid)
{
    int r = seize_threads(pid);

    if (r < 0)
        return r;
    while (r > 0) /* threads made meanwhile by threads not yet seized: until a look finds none */
        r = seize_threads(pid);
    return 0;
}
