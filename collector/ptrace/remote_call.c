/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A thread of a stopped process calls the kernel for us.
 *
 * The order of things: frames are written first, into unused memory. Then one call of ptrace(2)
 * gives the thread other registers: it stands at `syscall; ret`, its stack pointer at a frame, whose first
 * word leads to a call of rt_sigreturn. From there on it restores itself unless it is stopped. Only then
 * are its signals blocked, which the frame undoes. When it is taken back they are unblocked first, and then
 * one call of ptrace(2) gives it its registers again.
 *
 * It is taken back in a stop like the one that it was found in, within the kernel's handling of signals: only
 * there is a system call restarted as it would have been, or told of a signal that has come.
 */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "collector/process/frozen.h"
#include "collector/ptrace/remote_state.h"

#define PATIENCE_NS 1000000000ull /* for one call */
#define FILTERED 2                /* SECCOMP_MODE_FILTER */
#define RESTART_BLOCK 516         /* the kernel's ERESTART_RESTARTBLOCK */

#ifndef PTRACE_GET_RSEQ_CONFIGURATION
#define PTRACE_GET_RSEQ_CONFIGURATION 0x420f
#endif
#ifndef PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG
#define PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG 0x4211
#endif

int remote_get_registers(pid_t tid, struct user_regs_struct *ret_registers)
{
    struct iovec io = {ret_registers, sizeof(*ret_registers)};

    if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &io))
        return -errno;
    return io.iov_len == sizeof(*ret_registers) ? 0 : -ENOTSUP;
}

int remote_set_registers(pid_t tid, const struct user_regs_struct *registers)
{
    struct iovec io = {(void *)registers, sizeof(*registers)};

    return ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &io) ? -errno : 0;
}

/* ------------------------------------------------------------------------------------ which thread */

static bool (*filter_allows)(pid_t tid);

void remote_filtered_by(bool (*allows)(pid_t tid))
{
    filter_allows = allows;
}

/* Whether system calls of the thread are restricted, or returns are checked. True when that is unknown. */
static bool is_restricted(pid_t tid)
{
    AUTO_FCLOSE FILE *status = NULL;
    char path[64], line[512];
    bool restricted = false;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
    status = fopen(path, "re");
    while (status && !restricted && fgets(line, sizeof(line), status)) {
        int mode = 0;

        restricted = (sscanf(line, "Seccomp: %d", &mode) == 1 && mode &&
                      (mode != FILTERED || !filter_allows || !filter_allows(tid))) ||
                     (!strncmp(line, "x86_Thread_features:", 20) && strstr(line, "shstk"));
    }
    return !status || restricted;
}

/* Whether the kernel hands system calls of the thread to the program itself (PR_SET_SYSCALL_USER_DISPATCH).
 */
static bool dispatches_calls(pid_t tid)
{
    struct {
        uint64_t mode, selector, offset, length;
    } dispatch = {0};

    return !ptrace(PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG, tid, (void *)sizeof(dispatch), &dispatch) &&
           dispatch.mode;
}

/* Whether it stands in code that the kernel has begin anew when the thread has left the processor (rseq(2)).
 * It would not notice if the thread were elsewhere when it comes back. */
static bool in_restartable_sequence(const struct remote *remote, const struct remote_thread *thread)
{
    struct {
        uint64_t area;
        uint32_t size, signature, flags, padding;
    } registered = {0};
    struct {
        uint32_t version, flags;
        uint64_t start, length, abort;
    } sequence;
    uint64_t address = 0;

    if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, thread->tracee.tid, (void *)sizeof(registered), &registered) <=
            0 ||
        !registered.area)
        return false;
    if (remote_read(remote, registered.area + 8, &address, sizeof(address)))
        return true;
    if (!address)
        return false;
    return remote_read(remote, address, &sequence, sizeof(sequence)) ||
           registers_pc(&thread->registers) - sequence.start < sequence.length;
}

/* 0: it cannot call for us; else the more the better. */
static int suits(const struct remote *remote, const struct remote_thread *thread)
{
    const struct user_regs_struct *registers = &thread->registers;

    if (!thread->tracee.stopped || !registers_are_native(registers) || is_restricted(thread->tracee.tid) ||
        dispatches_calls(thread->tracee.tid) || in_restartable_sequence(remote, thread))
        return 0;
    if (registers_in_call(registers) && registers_result(registers) == -RESTART_BLOCK)
        return 1; /* its timeout would begin anew, should this process be killed */
    return thread->tracee.signal ? 2 : 3;
}

static struct remote_thread *choose_thread(struct remote *remote)
{
    struct remote_thread *chosen = NULL;
    int best = 0;

    for (size_t i = 0; i < remote->count && best < 3; i++) {
        int now = suits(remote, &remote->threads[i]);

        if (now > best) {
            best = now;
            chosen = &remote->threads[i];
        }
    }
    return chosen;
}

static uint64_t main_stack_pointer(const struct remote *remote)
{
    for (size_t i = 0; i < remote->count; i++)
        if (remote->threads[i].tracee.tid == remote->pid)
            return registers_stack(&remote->threads[i].registers);
    return UINT64_MAX;
}

/* ------------------------------------------------------------------------------------ preparing it */

/* A signal that it was about to get: the kernel makes the handler's frame, and the thread stands before the
 * handler's first instruction. */
static int take_signal(struct remote *remote, struct remote_thread *thread, struct error *err)
{
    int r = 0;

    if (thread->tracee.stop != TRACEE_EVENT)
        r = tracee_run_to(&thread->tracee, TRACEE_EVENT, PATIENCE_NS);
    if (!r)
        r = remote_get_registers(thread->tracee.tid, &thread->registers);
    return r ? error_set(err, r, NULL, "process %d does not stop", (int)remote->pid) : 0;
}

static uint64_t slot_address(const struct remote_caller *caller, size_t undo)
{
    return caller->memory + offsetof(struct remote_memory, slots) +
           (REMOTE_SLOTS - 1 - undo) * sizeof(((struct remote_memory *)0)->slots[0]);
}

/* Writes the frame that takes the thread back to where it is now. */
static int write_way_back(struct remote *remote, struct error *err)
{
    struct remote_caller *caller = &remote->caller;
    struct user_regs_struct registers = caller->thread->registers;
    uint8_t state[REMOTE_STATE_BYTES];
    struct signal_frame frame;
    size_t size = 0;
    int r = signal_frame_state(caller->thread->tracee.tid, state, sizeof(state), &size);

    if (r)
        return error_set(err, -ENOTSUP, NULL, "cannot read the registers of process %d", (int)remote->pid);
    caller->written = offsetof(struct remote_memory, state) + size;
    signal_frame_restart(&registers);
    signal_frame_fill(&frame, &caller->frames, &registers, caller->blocked);
    r = remote_write(remote, caller->frames.state, state, size);
    if (!r)
        r = remote_write(remote, slot_address(caller, 0), &frame, sizeof(frame));
    return r ? error_set(err, r, NULL, "cannot write to process %d", (int)remote->pid) : 0;
}

static int find_memory(struct remote *remote, struct error *err)
{
    struct remote_caller *caller = &remote->caller;
    int r = remote_place_memory(remote->pid, remote->memory, main_stack_pointer(remote),
                                sizeof(caller->before), &caller->memory, err);

    if (r)
        return r;
    caller->frames.sigreturn = caller->code.sigreturn;
    caller->frames.state = caller->memory + offsetof(struct remote_memory, state);
    r = remote_read(remote, caller->memory, &caller->before, sizeof(caller->before));
    return r ? error_set(err, r, NULL, "cannot read process %d", (int)remote->pid) : 0;
}

static int prepare(struct remote *remote, struct error *err)
{
    struct remote_caller *caller = &remote->caller;
    int r;

    if (process_is_frozen(remote->pid))
        return error_say(err, -ETIMEDOUT, "the control group of process %d is frozen", (int)remote->pid);
    caller->thread = choose_thread(remote);
    if (!caller->thread)
        return error_say(err, -ENOTSUP, "process %d has no thread that may call the kernel for it",
                         (int)remote->pid);
    r = take_signal(remote, caller->thread, err);
    if (!r)
        r = remote_place_code(remote->pid, remote->memory, &caller->code, err);
    if (!r)
        r = find_memory(remote, err);
    if (!r && ptrace(PTRACE_GETSIGMASK, caller->thread->tracee.tid, (void *)sizeof(caller->blocked),
                     &caller->blocked))
        r = error_set(err, -errno, NULL, "process %d is gone", (int)remote->pid);
    if (!r)
        r = write_way_back(remote, err);
    return r;
}

static int make_ready(struct remote *remote, struct error *err)
{
    struct remote_caller *caller = &remote->caller;
    int r;

    if (!caller->ready && !caller->refused) {
        r = prepare(remote, &caller->why);
        caller->ready = !r;
        caller->refused = r;
    }
    if (caller->refused && err)
        *err = caller->why;
    return caller->refused ? caller->why.code : 0;
}

/* ------------------------------------------------------------------------------------ calling */

/* The registers of a thread that makes a call at `frame` and then what that says. */
static struct user_regs_struct registers_of_call(const struct remote_caller *caller, long number,
                                                 const uint64_t arguments[6], uint64_t frame)
{
    struct user_regs_struct call = caller->thread->registers;

    registers_prepare_call(&call, number, arguments, caller->code.call, frame);
    return call;
}

static int leave_place(struct remote_caller *caller, const struct user_regs_struct *registers)
{
    const uint64_t all = ~0ull;
    pid_t tid = caller->thread->tracee.tid;
    int r = remote_set_registers(tid, registers);

    if (!r && !caller->parked && ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof(all), &all))
        r = -errno;
    caller->parked = true;
    return r;
}

/* Before the first of the frames that are to be gone through. */
static int park(struct remote_caller *caller)
{
    static const uint64_t none[6] = {0};
    uint64_t frame = slot_address(caller, caller->undo);
    struct user_regs_struct registers = registers_of_call(caller, 0, none, frame + sizeof(uint64_t));

    registers_set_pc(&registers, caller->code.sigreturn);
    return leave_place(caller, &registers);
}

/* It may have made the call, or not: what is prepared undoes it. */
static int give_up(struct remote *remote, int r, struct error *err)
{
    struct remote_caller *caller = &remote->caller;

    caller->refused = true;
    error_set(&caller->why, r, NULL,
              r == -ETIMEDOUT ? "process %d does not run (is it frozen?)" : "process %d is gone",
              (int)remote->pid);
    if (err)
        *err = caller->why;
    return r;
}

int remote_call(struct remote *remote, long number, const uint64_t arguments[6], int64_t *ret_result,
                struct error *err)
{
    struct remote_caller *caller = &remote->caller;
    struct user_regs_struct call;
    struct tracee *tracee;
    int r = make_ready(remote, err);

    if (r)
        return r;
    tracee = &caller->thread->tracee;
    call = registers_of_call(caller, number, arguments, slot_address(caller, caller->undo));
    r = leave_place(caller, &call);
    if (!r)
        r = tracee_run_to(tracee, TRACEE_CALL_EXIT, PATIENCE_NS);
    if (!r)
        r = remote_get_registers(tracee->tid, &call);
    if (!r)
        r = park(caller);
    *ret_result = registers_result(&call);
    return r ? give_up(remote, r, err) : 0;
}

int remote_undo(struct remote *remote, long number, const uint64_t arguments[6], struct error *err)
{
    struct remote_caller *caller = &remote->caller;
    struct user_regs_struct call;
    struct signal_frame frame;
    int r = make_ready(remote, err);

    if (r)
        return r;
    if (caller->undo == REMOTE_UNDO_MOST)
        return error_say(err, -ENOSPC, "too much to undo in process %d", (int)remote->pid);
    call = registers_of_call(caller, number, arguments, slot_address(caller, caller->undo));
    signal_frame_fill(&frame, &caller->frames, &call, ~0ull);
    if (remote_write(remote, slot_address(caller, caller->undo + 1), &frame, sizeof(frame)))
        return error_say(err, -EIO, "cannot write to process %d", (int)remote->pid);
    caller->undo++;
    r = park(caller);
    return r ? give_up(remote, r, err) : 0;
}

void remote_undo_drop(struct remote *remote)
{
    struct remote_caller *caller = &remote->caller;

    if (!caller->undo || caller->refused)
        return;
    caller->undo--;
    if (park(caller))
        give_up(remote, -ESRCH, NULL);
}

int remote_caller(struct remote *remote, pid_t *ret_tid, uint64_t *ret_scratch, struct error *err)
{
    int r = make_ready(remote, err);

    if (r)
        return r;
    *ret_tid = remote->caller.thread->tracee.tid;
    *ret_scratch = remote->caller.memory + offsetof(struct remote_memory, scratch);
    return 0;
}

/* ------------------------------------------------------------------------------------ the way back */

void remote_unpark(struct remote *remote)
{
    struct remote_caller *caller = &remote->caller;
    struct tracee *tracee;

    if (!caller->parked)
        return;
    tracee = &caller->thread->tracee;
    if ((!tracee->stopped || tracee->stop != TRACEE_EVENT) &&
        tracee_run_to(tracee, TRACEE_EVENT, PATIENCE_NS))
        return;
    if (caller->undo) {
        park(caller); /* a call that it has not begun is not made any more */
        return;
    }
    if (ptrace(PTRACE_SETSIGMASK, tracee->tid, (void *)sizeof(caller->blocked), &caller->blocked) ||
        remote_set_registers(tracee->tid, &caller->thread->registers))
        return;
    caller->parked = caller->ready = false; /* another call would find out anew */
    remote_write(remote, caller->memory, &caller->before, caller->written);
}
