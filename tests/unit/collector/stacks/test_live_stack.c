/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Live stacks: verdicts on made-up stacks; maps, stopping and taking on this process and children of it. The
 * rest is in tests/e2e/live_stack.sh. */
#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "collector/process/target_memory.h"
#include "collector/stacks/live_maps.h"
#include "collector/stacks/live_resolve.h"
#include "collector/stacks/live_stack.h"
#include "collector/stacks/live_stop.h"

/* ------------------------------------------------------------------------------------------------ verdicts
 */

/* main (0x4000) calls f (0x5000), which calls the stub (0x6000) of pause, which lies in a library. */
static struct live_frame frames[] = {
    {.pc = 0x900010, .cfa = 0x7d0, .return_address = 0x5025, .callee = 0x6000},
    {.pc = 0x5024, .cfa = 0x800, .return_address = 0x4015, .callee = 0x5000},
    {.pc = 0x4014, .cfa = 0x900, .return_address = 0x900100},
    {.pc = 0x9000ff},
};
static const struct live_stack made_up = {
    .frames = frames, .count = 4, .low = 0x100, .complete_to = 0x900, .whole = true};

static const struct live_call in_main = {0x8f8, 0x4000, 0x4100, 0x900100};
static const struct live_call in_f = {0x7f8, 0x5000, 0x5100, 0x4015};
static const struct live_call in_stub = {0x7c8, 0x6000, 0x6010, 0x5025};

Test(live_resolve, calls_with_a_frame_are_open)
{
    const struct live_call calls[] = {in_main, in_f, in_stub};
    struct live_resolution resolution = live_resolve(&made_up, calls, 3);

    cr_assert_eq(resolution.open, 3);
    cr_assert(resolution.certain);
}

Test(live_resolve, calls_without_a_frame_have_returned)
{
    const struct live_call calls[] = {
        in_main, in_f, {0x6f8, 0x7000, 0x7100, 0x5025}, {0x5f8, 0x7200, 0x7300, 0}};
    struct live_resolution resolution = live_resolve(&made_up, calls, 4);

    cr_assert_eq(resolution.open, 2);
    cr_assert(resolution.certain);
}

Test(live_resolve, a_frame_at_the_same_place_may_be_another_functions)
{
    struct live_call call = {0x7c8, 0x7000, 0x7100, 0x5015};

    cr_assert_eq(live_call_verdict(&made_up, &call), LIVE_RETURNED, "it was called from another place");
    call.return_address = 0x5025;
    cr_assert_eq(live_call_verdict(&made_up, &call), LIVE_UNKNOWN, "from the same place, perhaps by pointer");
    call.return_address = 0;
    cr_assert_eq(live_call_verdict(&made_up, &call), LIVE_UNKNOWN);
}

Test(live_resolve, what_is_not_certain_stays)
{
    const struct live_call calls[] = {
        in_main, in_f, {0x7c8, 0x7000, 0x7100, 0x5025}, {0x5f8, 0x7200, 0x7300, 0}};
    struct live_resolution resolution = live_resolve(&made_up, calls, 4);

    cr_assert_eq(resolution.open, 3);
    cr_assert_not(resolution.certain);
}

Test(live_resolve, an_outer_call_that_is_over_makes_the_nesting_uncertain)
{
    const struct live_call calls[] = {in_main, {0x7f8, 0x7000, 0x7100, 0x4005}, in_stub};
    struct live_resolution resolution = live_resolve(&made_up, calls, 3);

    cr_assert_eq(resolution.open, 3);
    cr_assert_not(resolution.certain);
}

Test(live_resolve, nothing_is_known_beyond_what_was_seen)
{
    const struct live_call outside[] = {{0x908, 0x8000, 0x8100, 0}, {0xf8, 0x4000, 0x4100, 0}};
    const struct live_stack nothing = {0};
    struct live_resolution resolution;

    for (size_t i = 0; i < ARRAY_SIZE(outside); i++)
        cr_assert_eq(live_call_verdict(&made_up, &outside[i]), LIVE_UNKNOWN, "%zu", i);
    resolution = live_resolve(&nothing, &in_main, 1);
    cr_assert_eq(resolution.open, 1);
    cr_assert_not(resolution.certain);
    resolution = live_resolve(&nothing, NULL, 0);
    cr_assert(resolution.certain);
}

Test(live_resolve, the_outermost_frame_was_not_called)
{
    const struct live_call start = {0xa00, 0x900080, 0x900200, 0};
    struct live_stack broken_off = made_up;

    cr_assert_eq(live_call_verdict(&made_up, &start), LIVE_OPEN);
    broken_off.whole = false;
    cr_assert_eq(live_call_verdict(&broken_off, &start), LIVE_UNKNOWN);
}

/* ---------------------------------------------------------------------------------------------------- maps
 */

Test(live_maps, they_tell_where_addresses_lie)
{
    long page = sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, 3 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), copy[16];
    const struct live_mapping *code, *stack;
    struct live_maps maps;
    int fd, local;

    cr_assert_neq(memory, MAP_FAILED);
    munmap(memory + page, page);
    cr_assert_eq(live_maps_read(getpid(), &maps), 0);
    cr_assert_null(live_maps_find(&maps, (uintptr_t)memory + page));
    cr_assert_not_null(live_maps_find(&maps, (uintptr_t)memory + page - 1));
    cr_assert_not_null(live_maps_find(&maps, (uintptr_t)memory + 2 * page));
    code = live_maps_find(&maps, (uintptr_t)live_maps_read);
    cr_assert(code && code->executable && code->kind == LIVE_FILE);
    stack = live_maps_find(&maps, (uintptr_t)&local);
    cr_assert(stack && !stack->executable && stack->kind == LIVE_OTHER);
    fd = live_mapping_open(getpid(), code);
    cr_assert_geq(fd, 0);
    cr_assert_eq(pread(fd, copy, sizeof(copy), 0), sizeof(copy));
    cr_assert_eq(memcmp(copy, "\177ELF", 4), 0);
    close(fd);
    cr_assert_lt(live_mapping_open(getpid(), stack), 0);
    cr_assert_eq(target_memory_read(getpid(), (uintptr_t)live_maps_read, copy, sizeof(copy)), sizeof(copy));
    cr_assert_eq(memcmp(copy, (const char *)(uintptr_t)live_maps_read, sizeof(copy)), 0);
    cr_assert_eq(target_memory_read(getpid(), (uintptr_t)memory + page - 8, copy, sizeof(copy)), 8,
                 "up to the hole");
    live_maps_release(&maps);
    cr_assert_eq(live_maps_read(0x7fffffff, &maps), -ESRCH);
}

/* ------------------------------------------------------------------------------------------------ stopping
 */

/* Shared with a child. */
struct shared {
    atomic_int sleeping, interrupted, handled, semaphore;
};

static struct shared *shared;

static void sleep_in_epoll(void)
{
    struct epoll_event event;

    if (epoll_wait(epoll_create1(0), &event, 1, -1) < 0 && errno == EINTR)
        shared->interrupted++;
}

static void sleep_in_epoll_pwait(void)
{
    struct epoll_event event;
    sigset_t none;

    sigemptyset(&none);
    if (epoll_pwait(epoll_create1(0), &event, 1, -1, &none) < 0 && errno == EINTR)
        shared->interrupted++;
}

static void sleep_in_semop(void)
{
    struct sembuf wait_for_zero = {0, 0, 0};

    if (semop(shared->semaphore, &wait_for_zero, 1) < 0 && errno == EINTR)
        shared->interrupted++;
}

static void sleep_in_sigtimedwait(void)
{
    struct timespec long_time = {1000000, 0};
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    if (sigtimedwait(&set, NULL, &long_time) < 0 && errno == EINTR)
        shared->interrupted++;
}

static void on_signal(int signal)
{
    shared->handled++;
}

static pid_t start_child(void (*sleep)(void))
{
    struct sigaction action = {.sa_handler = on_signal};
    pid_t child;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(shared, MAP_FAILED);
    shared->semaphore = semget(IPC_PRIVATE, 1, 0600);
    semctl(shared->semaphore, 0, SETVAL, 1);
    child = fork();
    cr_assert_geq(child, 0);
    if (!child) {
        sigaction(SIGUSR1, &action, NULL);
        sigaction(SIGRTMIN, &action, NULL);
        shared->sleeping = 1;
        sleep();
        _exit(0);
    }
    return child;
}

/* Waits for its end; returns the status. */
static int end_child(pid_t child)
{
    int status;

    cr_assert_eq(waitpid(child, &status, 0), child);
    semctl(shared->semaphore, 0, IPC_RMID);
    return status;
}

static char state_of(pid_t pid)
{
    char path[64], line[128], state = '?';
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "State: %c", &state) == 1)
            break;
    if (file)
        fclose(file);
    return state;
}

static void wait_for_state(pid_t pid, char state)
{
    uint64_t end = clock_ns(CLOCK_MONOTONIC) + 20000000000ull;

    while (state_of(pid) != state) {
        cr_assert_lt(clock_ns(CLOCK_MONOTONIC), end, "%c instead of %c", state_of(pid), state);
        usleep(1000);
    }
}

/* Sleeps, that is to say has nothing to do any more, from the begin on. */
static void wait_until_asleep(pid_t pid)
{
    while (!shared->sleeping)
        usleep(1000);
    wait_for_state(pid, 'S');
}

static void (*const sleeps[])(void) = {sleep_in_epoll, sleep_in_epoll_pwait, sleep_in_semop,
                                       sleep_in_sigtimedwait};

Test(live_stop, sleepers_that_are_stopped_all_the_same_do_not_see_it)
{
    for (size_t i = 0; i < ARRAY_SIZE(sleeps); i++) {
        pid_t child = start_child(sleeps[i]);
        struct live_stop *stop;

        wait_until_asleep(child);
        cr_assert_eq(live_stop_start(&stop, NULL), 0);
        cr_assert_eq(live_stop_threads(stop, &child, 1), 1);
        cr_assert_eq(state_of(child), 't', "it stands still");
        live_stop_end(stop);
        wait_for_state(child, 'S');
        cr_assert_eq(shared->interrupted, 0, "%zu", i);
        kill(child, SIGKILL);
        end_child(child);
    }
}

Test(live_stop, a_signal_that_comes_meanwhile_interrupts_as_it_would)
{
    for (size_t i = 0; i < ARRAY_SIZE(sleeps); i++) {
        pid_t child = start_child(sleeps[i]);
        struct live_stop *stop;
        int status;

        wait_until_asleep(child);
        cr_assert_eq(live_stop_start(&stop, NULL), 0);
        cr_assert_eq(live_stop_threads(stop, &child, 1), 1);
        kill(child, SIGUSR1);
        live_stop_end(stop);
        status = end_child(child);
        cr_assert(WIFEXITED(status) && !WEXITSTATUS(status));
        cr_assert_eq(shared->handled, 1, "%zu", i);
        cr_assert_eq(shared->interrupted, 1, "%zu", i);
    }
}

enum { STOPS = 800 };

static void compute(void)
{
    for (;;)
        ;
}

struct sender {
    pid_t to;
    atomic_int end, sent;
};

/* Signals of this kind are queued, none is merged with another. */
static void *send_signals(void *argument)
{
    struct sender *sender = argument;

    while (!sender->end)
        sender->sent += !sigqueue(sender->to, SIGRTMIN, (union sigval){0});
    return NULL;
}

Test(live_stop, signals_that_come_while_a_thread_is_being_stopped_arrive)
{
    struct sender sender = {.to = start_child(compute)};
    pthread_t thread;

    while (!shared->sleeping)
        usleep(1000);
    cr_assert_eq(pthread_create(&thread, NULL, send_signals, &sender), 0);
    for (int i = 0; i < STOPS; i++) {
        struct live_stop *stop;

        cr_assert_eq(live_stop_start(&stop, NULL), 0);
        live_stop_threads(stop, &sender.to, 1);
        live_stop_end(stop);
    }
    sender.end = 1;
    pthread_join(thread, NULL);
    for (int i = 0; i < 20000 && shared->handled < sender.sent; i++)
        usleep(1000);
    cr_assert_eq(shared->handled, sender.sent);
    kill(sender.to, SIGKILL);
    end_child(sender.to);
}

Test(live_stop, the_same_thread_is_stopped_once)
{
    pid_t child = start_child(sleep_in_epoll), children[2] = {child, 0x7fffffff};
    struct live_stop *stop, *other;

    wait_until_asleep(child);
    cr_assert_eq(live_stop_start(&stop, NULL), 0);
    cr_assert_eq(live_stop_start(&other, NULL), 0);
    cr_assert_eq(live_stop_threads(stop, children, 2), 1, "the other one does not exist");
    cr_assert_eq(live_stop_threads(stop, children, 2), 0);
    cr_assert_eq(live_stop_threads(other, children, 2), 0, "it is somebody else's");
    live_stop_end(other);
    cr_assert_eq(state_of(child), 't');
    live_stop_end(stop);
    wait_for_state(child, 'S');
    kill(child, SIGKILL);
    end_child(child);
}

/* -------------------------------------------------------------------------------------------------- taking
 */

struct sleeper {
    atomic_int tid;
    uint64_t sp; /* at the entry of its function */
    atomic_int rounds, end;
    sem_t wake;
};

__attribute__((noinline, noclone)) static void *sleep_here(void *argument)
{
    struct sleeper *sleeper = argument;

    sleeper->sp = (uint64_t)__builtin_frame_address(0) + 8;
    sleeper->tid = (int)syscall(SYS_gettid);
    while (!sleeper->end) {
        sleeper->rounds++;
        sem_wait(&sleeper->wake);
    }
    return NULL;
}

/* NULL, and the test is skipped, where the kernel does not let us look. */
static struct live_stacks *take_own(void)
{
    struct live_stacks *stacks = NULL;
    pid_t pid = getpid();
    struct error err = {0};
    int r = live_stacks_read(&pid, 1, &stacks, &err);

    if (geteuid() && (r == -EPERM || r == -EACCES))
        cr_skip_test("not root");
    cr_assert_eq(r, 0, "%s", err.message);
    return stacks;
}

static pthread_t start_sleeper(struct sleeper *sleeper)
{
    pthread_t thread;

    sem_init(&sleeper->wake, 0, 0);
    cr_assert_eq(pthread_create(&thread, NULL, sleep_here, sleeper), 0);
    while (!sleeper->tid)
        usleep(1000);
    wait_for_state(sleeper->tid, 'S');
    return thread;
}

static void end_sleeper(struct sleeper *sleeper, pthread_t thread)
{
    sleeper->end = 1;
    sem_post(&sleeper->wake);
    pthread_join(thread, NULL);
}

Test(live_stack, a_sleeping_thread_is_seen_in_its_function)
{
    struct sleeper sleeper = {0};
    pthread_t thread = start_sleeper(&sleeper);
    struct live_stacks *stacks = take_own();
    struct live_stack stack = {0};
    struct live_call call = {.start = (uintptr_t)sleep_here, .end = (uintptr_t)sleep_here + 4096};

    cr_assert_eq(live_stack_frames(stacks, sleeper.tid, &stack), -EAGAIN, "not confirmed yet");
    cr_assert_eq(live_stacks_confirm(stacks, NULL), 0);
    cr_assert_eq(live_stack_frames(stacks, sleeper.tid, &stack), 0);
    cr_assert_eq(live_stack_frames(stacks, 0x7fffffff, &(struct live_stack){0}), -ESRCH);
    cr_assert_eq(live_stack_frames(stacks, (pid_t)syscall(SYS_gettid), &(struct live_stack){0}), -EAGAIN,
                 "this thread runs");
    call.sp = sleeper.sp;
    cr_assert_eq(live_call_verdict(&stack, &call), LIVE_OPEN);
    call.sp -= 16;
    cr_assert_eq(live_call_verdict(&stack, &call), LIVE_RETURNED);
    live_stack_release(&stack);
    live_stacks_free(stacks);
    end_sleeper(&sleeper, thread);
}

Test(live_stack, a_thread_that_ran_before_it_was_confirmed_is_uncertain)
{
    struct sleeper sleepers[3] = {0};
    pthread_t threads[3];
    struct live_stacks *stacks;
    struct live_stack stack = {0};

    for (size_t i = 0; i < ARRAY_SIZE(sleepers); i++)
        threads[i] = start_sleeper(&sleepers[i]);
    stacks = take_own();
    sem_post(&sleepers[0].wake); /* runs, and sleeps at the same place again */
    while (sleepers[0].rounds < 2)
        usleep(1000);
    wait_for_state(sleepers[0].tid, 'S');
    end_sleeper(&sleepers[1], threads[1]);
    cr_assert_eq(live_stacks_confirm(stacks, NULL), 0);
    cr_assert_eq(live_stack_frames(stacks, sleepers[0].tid, &stack), -EAGAIN);
    cr_assert_eq(live_stack_frames(stacks, sleepers[1].tid, &stack), -EAGAIN);
    cr_assert_eq(live_stack_frames(stacks, sleepers[2].tid, &stack), 0);
    live_stack_release(&stack);
    live_stacks_free(stacks);
    end_sleeper(&sleepers[0], threads[0]);
    end_sleeper(&sleepers[2], threads[2]);
}

Test(live_stack, processes_that_are_gone_have_no_threads)
{
    struct live_stacks *stacks = NULL;
    pid_t gone = fork();
    struct error err = {0};
    int r;

    if (!gone)
        _exit(0);
    waitpid(gone, NULL, 0);
    r = live_stacks_read(&gone, 1, &stacks, &err);
    if (geteuid() && (r == -EPERM || r == -EACCES))
        cr_skip_test("not root");
    cr_assert_eq(r, 0, "%s", err.message);
    cr_assert_eq(live_stacks_confirm(stacks, NULL), 0);
    cr_assert_eq(live_stacks_count(stacks).threads, 0);
    live_stacks_free(stacks);
}
