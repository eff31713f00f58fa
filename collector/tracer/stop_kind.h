/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a stop of a traced thread is, by the number that wait(2) gives for it (ptrace(2)): no more than that number is
 * looked at. */
#ifndef TRACECTL_COLLECTOR_TRACER_STOP_KIND_H
#define TRACECTL_COLLECTOR_TRACER_STOP_KIND_H

enum stop_kind {
    STOP_SIGNAL,     /* a signal is about to be delivered: its number */
    STOP_TRAP,       /* asked for by the tracer; or the thread begins; or a stop of its process has ended */
    STOP_GROUP,      /* its process is stopped (job control, SIGSTOP): it stays so until SIGCONT */
    STOP_BIRTH,      /* it has made a process or a thread, which waits for its parent to be let go */
    STOP_VFORK_DONE, /* its child by vfork has left its memory */
    STOP_EXEC,       /* its process runs another program, of which nothing has run yet */
    STOP_OTHER,      /* is not asked for: it continues */
};

/* `status`: siginfo_t.si_status of waitid(2) with WSTOPPED, of a thread traced with PTRACE_SEIZE. */
enum stop_kind stop_kind_of(int status);

#endif
