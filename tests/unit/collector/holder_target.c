/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "holder_target.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "collector/process/wait_status.h"

#define OURS 0x7ace

struct scene *scene_new(void)
{
    void *memory =
        mmap(NULL, sizeof(struct scene), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    cr_assert_neq(memory, MAP_FAILED);
    return memory;
}

pid_t target_start(int (*run)(struct scene *scene), struct scene *scene)
{
    pid_t pid = fork();
    int status;

    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves nothing behind */
        raise(SIGSTOP);
        _exit(run(scene));
    }
    cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
    cr_assert(WIFSTOPPED(status));
    return pid;
}

void target_hold(struct thread_holder *holder, pid_t pid)
{
    struct error err = {0};

    cr_assert_eq(thread_holder_seize(holder, pid, &err), 0, "%s", err.message);
    cr_assert_eq(kill(pid, SIGCONT), 0);
}

int target_status(pid_t pid)
{
    int status;

    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return wait_status_code(status);
}

static bool is_mine(void *context, const siginfo_t *signal)
{
    return signal->si_signo == SIGURG && signal->si_code == SI_QUEUE && signal->si_value.sival_int == OURS;
}

struct thread_holder_options thread_holder_test_options(
    uint64_t (*stopped)(void *context, pid_t tid, const struct thread_holder_stop *stop), void *context)
{
    return (struct thread_holder_options){.is_mine = is_mine, .stopped = stopped, .context = context};
}

bool schedule(pid_t pid, pid_t tid)
{
    siginfo_t signal;

    memset(&signal, 0, sizeof(signal));
    signal.si_signo = SIGURG;
    signal.si_code = SI_QUEUE;
    signal.si_value.sival_int = OURS;
    return !syscall(SYS_rt_tgsigqueueinfo, pid, tid, SIGURG, &signal);
}

void pause_briefly(void)
{
    const struct timespec pause = {0, 200000};

    nanosleep(&pause, NULL);
}
