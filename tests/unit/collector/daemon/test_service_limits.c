/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which processes the daemon takes for recorded ones, and which recording it ends when they take too much. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "collector/daemon/state.h"

#define MIB ((size_t)1 << 20)
#define SECOND_NS ((uint64_t)1000000000)

static struct worker workers[2];
static struct worker_page pages[2];
static struct service service;

/* Limits that nobody reaches, and recordings of two targets that nobody makes. */
static void set_up(void)
{
    memset(workers, 0, sizeof(workers));
    memset(pages, 0, sizeof(pages));
    for (unsigned i = 0; i < 2; i++)
        workers[i] = (struct worker){.target = i ? "b" : "a", .page = &pages[i]};
    service = (struct service){
        .workers = workers,
        .worker_count = 2,
        .config = {.store = "/nonexistent",
                   .cpu = 1000,
                   .memory_bytes = UINT64_MAX,
                   .store_bytes = UINT64_MAX,
                   .max_recordings = 2},
    };
}

static bool has(const char *target, pid_t pid, uint64_t started)
{
    return service_has_process(&service, target, (struct service_identity){pid, started});
}

Test(service_limits, a_number_that_is_used_again_is_another_process, .init = set_up)
{
    struct worker_figures *figures = &pages[0].copies[0];

    workers[0].process.pid = 10;
    workers[0].process.started = 500;
    figures->processes[figures->process_count++] = (struct service_identity){11, 501};
    cr_assert(has("a", 10, 500));
    cr_assert(has("a", 11, 501));
    cr_assert_not(has("b", 10, 500), "another target has it");
    cr_assert_not(has("a", 10, 900), "the first process's number, of one that came later");
    cr_assert_not(has("a", 11, 900), "likewise of a child");
}

Test(service_limits, a_process_is_told_by_its_start)
{
    uint64_t own = service_process_started(getpid());
    pid_t child = fork();
    int status;

    if (!child)
        _exit(0);
    waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | WNOWAIT);
    cr_assert_gt(own, 0);
    cr_assert_eq(service_process_started(child), 0, "it is a zombie");
    waitpid(child, &status, 0);
    cr_assert_eq(service_process_started(child), 0, "it has gone");
}

/* ------------------------------------------------------------------------------------ recorders that take
 * something */

static void burn(void)
{
    while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < SECOND_NS / 10)
        ;
}

static void grow(void)
{
    volatile char *memory = malloc(64 * MIB);

    for (size_t i = 0; memory && i < 64 * MIB; i += 4096)
        memory[i] = 1;
}

static void do_nothing(void)
{
}

/* A stand-in for a recorder: does something, and waits for SIGTERM. */
static pid_t start(void (*act)(void))
{
    int ready[2];
    char byte;
    pid_t pid;

    cr_assert_eq(pipe(ready), 0);
    pid = fork();
    if (!pid) {
        signal(SIGTERM, SIG_DFL);
        act();
        if (write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    cr_assert_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

/* Two recorders of which the second does more. */
static void start_both(void (*act)(void))
{
    set_up();
    workers[0].pid = start(do_nothing);
    workers[1].pid = start(act);
    service.sampled_ns = clock_ns(CLOCK_MONOTONIC) - SECOND_NS;
}

/* That one has been told to end, and the other one has not. */
static void assert_ends(unsigned which)
{
    int status;

    cr_assert(workers[which].stopping && workers[which].over);
    cr_assert_eq(waitpid(workers[which].pid, &status, 0), workers[which].pid);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    cr_assert_not(workers[!which].stopping);
    cr_assert_eq(waitpid(workers[!which].pid, &status, WNOHANG), 0);
}

static void end_others(void)
{
    for (unsigned i = 0; i < 2; i++)
        if (workers[i].pid > 0 && !workers[i].stopping)
            kill(workers[i].pid, SIGKILL);
    while (wait(NULL) > 0)
        ;
}

Test(service_limits, nothing_ends_within_the_limits, .fini = end_others)
{
    start_both(burn);
    service_sample_limits(&service);
    cr_assert_not(workers[0].stopping || workers[1].stopping);
    cr_assert_geq(workers[1].cpu_ns, SECOND_NS / 20);
    cr_assert_gt(service.memory_bytes, 0);
}

/* A burst is none: it takes ten looks in a row. */
Test(service_limits, processor_time, .fini = end_others)
{
    start_both(burn);
    service.config.cpu = 0.01;
    service.cpu = 1;
    for (unsigned i = 0; i < 9; i++) {
        workers[0].cpu_ns = workers[1].cpu_ns = 0;
        service_sample_limits(&service);
        cr_assert_not(workers[1].stopping, "at look %u", i + 1);
        service.sampled_ns -= SECOND_NS;
    }
    workers[0].cpu_ns = workers[1].cpu_ns = 0;
    service_sample_limits(&service);
    assert_ends(1);
    cr_assert_eq(service.counters.stopped_cpu, 1);
}

Test(service_limits, memory, .fini = end_others)
{
    start_both(grow);
    service.config.memory_bytes = 32 * MIB;
    service_sample_limits(&service);
    assert_ends(1);
    cr_assert_eq(service.counters.stopped_memory, 1);
}

/* The oldest run ends, so that it can be deleted. */
Test(service_limits, disk, .fini = end_others)
{
    char path[] = "/tmp/tracectl-limits.XXXXXX", data[8192] = {1};
    int fd = mkstemp(path);

    cr_assert_eq(write(fd, data, sizeof(data)), (ssize_t)sizeof(data));
    fsync(fd);
    start_both(do_nothing);
    workers[0].begun_ns = 1;
    workers[1].begun_ns = clock_ns(CLOCK_MONOTONIC);
    service.config.store = path;
    service.config.store_bytes = 4096;
    service_sample_limits(&service);
    close(fd);
    unlink(path);
    assert_ends(0);
    cr_assert_eq(service.counters.stopped_store, 1);
}

/* Also when there are more than a new configuration allows. */
Test(service_limits, no_more_recordings_than_allowed, .init = set_up)
{
    const struct service_target target = {.name = "c"};
    const struct service_process process = {.pid = getpid()};

    for (service.config.max_recordings = 2; service.config.max_recordings; service.config.max_recordings--)
        service_begin(&service, &target, &process);
    cr_assert_eq(service.worker_count, 2);
    cr_assert_eq(service.counters.refused, 2);
    cr_assert_eq(service.counters.begun, 0);
}

/* Two recordings of one user, by processes of ours that a signal may end. */
static void fill_by(uid_t user)
{
    for (unsigned i = 0; i < 2; i++) {
        workers[i].process.user = user;
        workers[i].begun_ns = i + 1;
        workers[i].pid = fork();
        if (!workers[i].pid) {
            pause();
            _exit(0);
        }
    }
}

static void end_processes(void)
{
    for (unsigned i = 0; i < 2; i++) {
        kill(workers[i].pid, SIGKILL);
        waitpid(workers[i].pid, NULL, 0);
    }
}

Test(service_limits, a_user_with_all_places_gives_one_to_another, .init = set_up, .fini = end_processes)
{
    const struct service_target target = {.name = "c"};
    const struct service_process root = {.pid = 1, .user = 0}, same = {.pid = 2, .user = 1000};

    fill_by(1000);
    service.round = 1;
    cr_assert_not(service_has_place(&service, &target, &same), "it has all of them");
    cr_assert_not(workers[0].stopping || workers[1].stopping);
    cr_assert_not(service_has_place(&service, &target, &root), "there will be one");
    cr_assert(workers[1].stopping && workers[1].over, "the youngest ends");
    cr_assert_not(workers[0].stopping);
    cr_assert_not(service_has_place(&service, &target, &root));
    cr_assert_not(workers[0].stopping, "one is enough");
    cr_assert_eq(service.excluded_count, 2);
    cr_assert_eq(service.left_out[0].user, 1000);
    cr_assert_eq(service.left_out[1].user, 0);
    cr_assert_eq(service.left_out[1].processes, 2);
    service.round = 2;
    service_forget_excluded(&service);
    cr_assert_eq(service.excluded_count, 0);
}

Test(service_limits, with_more_users_than_places_nobody_is_pushed_out, .init = set_up, .fini = end_processes)
{
    const struct service_target target = {.name = "c"};
    const struct service_process third = {.pid = 1, .user = 1002};

    fill_by(1000);
    workers[1].process.user = 1001;
    cr_assert_not(service_has_place(&service, &target, &third));
    cr_assert_not(workers[0].stopping || workers[1].stopping);
    service.config.max_recordings = 3;
    cr_assert(service_has_place(&service, &target, &third));
}
