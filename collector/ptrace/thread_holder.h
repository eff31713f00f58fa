/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The thread holder: makes single threads of a process stand still for a while, at a place of the caller's
 * choice, while all the others run on.
 *
 * The place is where a signal is sent to the thread, by a BPF program at a probe (bpf_send_signal_thread with
 * SIGURG, which does nothing where no thread holder runs: it is ignored by default, and Go's runtime
 * expects to get it for no reason). The thread holder traces the process with ptrace(2), so that the thread
 * stops when the signal arrives, before anything else happens. It is held as long as a function of the caller
 * says, or until another thread lets it go.
 *
 * Nothing of what the process does or sees changes but the time it takes: other signals arrive as they were
 * sent, stops of job control are stops, system calls are not interrupted by signals that the process ignores,
 * ends are reported to the parent. All threads and children made later are traced as well. If the thread
 * holder dies, SIGKILL included, the kernel lets all of them go and they run on; what the processes notice of
 * being traced is TracerPid in /proc, and that a program with the set-user-id bit gets no other user's rights
 * unless the thread holder has CAP_SYS_PTRACE.
 *
 * Who traces is a process of its own, since wait(2) of any thread of a process would take what is meant for
 * the tracing one; it shares all memory and descriptors with the process that made it, so that the caller's
 * function is an ordinary call.
 */
#ifndef TRACECTL_COLLECTOR_PTRACE_THREAD_HOLDER_H
#define TRACECTL_COLLECTOR_PTRACE_THREAD_HOLDER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct error;

struct thread_holder;

/* A thread that has just been stopped by a signal. */
struct thread_holder_stop {
    pid_t tid;
    siginfo_t signal; /* as it was sent */
};

/* What `stopped` may answer instead of a time: the signal is not the thread holder's after all. It is passed
 * on to the thread, which is not held. */
#define THREAD_HOLDER_NOT_MINE UINT64_MAX

struct thread_holder_options {
    /* Whether a signal is the thread holder's; asked for every one that arrives, SIGKILL aside. NULL: it is
     * when it is a SIGURG from the kernel (SI_KERNEL), which is what BPF programs send. */
    bool (*is_mine)(void *context, const siginfo_t *signal);
    /* How long the thread shall stand at most, in ns; 0: it continues at once. Called in the thread holder's
     * process, one call after the other, with all signals blocked: it should be short, and hold no lock that
     * others wait for. Registers: thread_holder_registers(). */
    uint64_t (*stopped)(void *context, pid_t tid, const struct thread_holder_stop *stop);
    void *context;
    /* The thread gets the thread holder's signal, too, when it continues. Wanted for Go: a SIGURG of the
     * runtime that came while ours was on its way has merged with it, and the runtime waits for its arrival.
     */
    bool pass_on;
};

/* All since thread_holder_new. */
struct thread_holder_counts {
    uint64_t stops;     /* that `stopped` was asked about */
    uint64_t holds;     /* of which the thread was held */
    uint64_t let_go;    /* ended by thread_holder_let_go or thread_holder_preempt */
    uint64_t timed_out; /* ended because the time was over */
    uint64_t ended;     /* ended with the thread, or with the thread holder */
    uint64_t refused;   /* not held since too many were held already (THREAD_HOLDER_HOLDS_MAX) */
    uint64_t preempted; /* went on with a request to preempt their goroutine */
    uint64_t preempt_failed;
    uint64_t foreign; /* SIGURGs that were not the thread holder's */
    uint64_t signals; /* of others, SIGURG or not, that were passed on */
    uint64_t held_ns; /* of all holds that are over, from stop to going on */
};

#define THREAD_HOLDER_HOLDS_MAX 256

/* Where a goroutine is told that it shall let others run: in its g, which lies in the target's memory. */
struct thread_holder_preemption {
    uint64_t g;                 /* address of the runtime.g that the thread runs */
    uint32_t preempt_offset;    /* of g.preempt */
    uint32_t stackguard_offset; /* of g.stackguard0 */
};

/* Starts the thread holder. -EAGAIN, -ENOMEM, -EMFILE. */
int thread_holder_new(const struct thread_holder_options *options, struct thread_holder **ret_holder,
                      struct error *err);

/* The process that traces: to programs that must tell it from a debugger, the parent of its tracees. */
pid_t thread_holder_pid(const struct thread_holder *holder);

/* Traces a process, all its threads, and whatever they make from now on. It may be stopped (SIGSTOP), and
 * stays so until SIGCONT. Returns when it is traced. -ESRCH: it is gone, or the thread holder is; -EPERM:
 * another process traces it, or it is another user's. Not to be called by `stopped`. */
int thread_holder_seize(struct thread_holder *holder, pid_t pid, struct error *err);

/* Ends the hold of a thread early, in some 10 us. From any thread, and from `stopped` for other threads than
 * the one that it is asked about. A thread that is not held (any more, or yet) is none of its business.
 * -ESRCH: the thread holder is gone. -EAGAIN: too many requests at once. */
int thread_holder_let_go(struct thread_holder *holder, pid_t tid);

/* Lets a thread continue so that Go's runtime puts the goroutine that it runs to the end of the queue at this
 * very place: sets g.preempt and g.stackguard0 as runtime.preemptone does, and gives the thread SIGURG as
 * from runtime.preemptM. Where the runtime does not want to be preempted it continues until a place where it
 * does. The caller knows that the thread runs user code on that g.
 *
 * For a held thread this ends the hold. Called by `stopped` for the thread that it is asked about, the thread
 * is preempted when it continues, after a hold or at once. Errors: as thread_holder_let_go. */
int thread_holder_preempt(struct thread_holder *holder, pid_t tid,
                          const struct thread_holder_preemption *where);

/* The registers of the thread, for `stopped` only. -ESRCH: it has been killed. */
int thread_holder_registers(const struct thread_holder_stop *stop, struct user_regs_struct *ret_registers);

struct thread_holder_counts thread_holder_counts(const struct thread_holder *holder);

/* Lets all threads continue, those that are held first, and ends the thread holder. Accepts NULL. */
void thread_holder_free(struct thread_holder *holder);

#endif
