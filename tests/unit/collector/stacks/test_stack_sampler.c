/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sampling children of this process: names, order, values in frames, and who has moved. The rest is in
 * tests/e2e/stat_live.sh. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "collector/stacks/sampled_thread.h"
#include "collector/stacks/stack_sampler.h"
#include "collector/stacks/thread_state.h"

#define PART_OF_STACK __attribute__((noinline, noclone))

enum { MARK = 0x5eed1e };

/* ------------------------------------------------------------------------------------------ pure functions
 */

static struct live_activation stack_a[] = {
    {.pc = 0x9005, .interrupted = true}, {.pc = 0x1010}, {.pc = 0x1100}};
static struct live_activation stack_b[] = {{.pc = 0x9105}, {.pc = 0x9205}, {.pc = 0x1010}, {.pc = 0x1100}};
static struct live_activation stack_c[] = {{.pc = 0x9105}, {.pc = 0x1020}, {.pc = 0x1100}};
static struct live_activation stack_d[] = {{.pc = 0x1055, .interrupted = true}, {.pc = 0x1100}};
static struct live_activation stack_e[] = {{.pc = 0x1066, .interrupted = true}, {.pc = 0x1100}};

static bool stays(struct live_activation *before, size_t before_count, struct live_activation *now,
                  size_t now_count)
{
    const struct sampled_thread a = {.activations = before, .count = before_count};
    const struct sampled_thread b = {.activations = now, .count = now_count};

    return sampled_thread_stays(&a, &b, 0x1000, 0x2000);
}

Test(sampled_thread, moves_when_its_own_programs_calls_change)
{
    cr_assert(stays(stack_a, 3, stack_b, 4), "only the library's calls are others");
    cr_assert(stays(stack_d, 2, stack_e, 2), "within one function");
    cr_assert_not(stays(stack_a, 3, stack_c, 3), "another call");
    cr_assert_not(stays(stack_a, 3, stack_d, 2), "one call less");
    cr_assert_not(stays(stack_d, 2, stack_a, 3), "one call more");
    cr_assert_not(stays(stack_b, 2, stack_c, 1), "without calls of the program all are compared");
    cr_assert(stays(stack_b, 2, stack_b, 2));
}

Test(thread_state, says_what_a_thread_waits_in)
{
    struct live_thread thread = {.state = 1, .system_call = SYS_futex};
    char words[64];

    thread_state_words(&thread, words, sizeof(words));
    cr_assert_str_eq(words, "sleeping in futex");
    thread.system_call = 9999;
    thread_state_words(&thread, words, sizeof(words));
    cr_assert_str_eq(words, "sleeping in system call 9999");
    thread.state = 2;
    thread.system_call = -1;
    thread_state_words(&thread, words, sizeof(words));
    cr_assert_str_eq(words, "waiting");
    thread.state = 0;
    thread.system_call = SYS_read;
    thread_state_words(&thread, words, sizeof(words));
    cr_assert_str_eq(words, "running");
}

/* ---------------------------------------------------------------------------------------------- a child */

static int ready[2];
static bool leaves_main;

/* Waits in a frame with a known word at a known distance from its CFA: the address of its return slot. */
PART_OF_STACK static void wait_marked(void)
{
    volatile uint64_t mark[2] = {MARK, (uint64_t)(uintptr_t)__builtin_dwarf_cfa()};
    int64_t distance = (int64_t)((uint64_t)(uintptr_t)&mark[0] - mark[1]);

    if (write(ready[1], &distance, sizeof(distance)) != sizeof(distance))
        _exit(1);
    for (;;)
        pause();
}

static void *thread_main(void *argument)
{
    wait_marked();
    return NULL;
}

PART_OF_STACK static void begin_thread(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, thread_main, NULL);
    if (leaves_main)
        pthread_exit(NULL);
    pthread_join(thread, NULL);
}

/* A child with two threads, which ends with this process; the distance of the mark is read from it. */
static pid_t start_child(int64_t *ret_distance)
{
    pid_t pid;

    cr_assert_eq(pipe(ready), 0);
    pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        begin_thread();
        _exit(0);
    }
    cr_assert_eq(read(ready[0], ret_distance, sizeof(*ret_distance)), (ssize_t)sizeof(*ret_distance));
    usleep(20000); /* it goes on to sleep */
    return pid;
}

static struct stack_sampler *new_sampler(const pid_t *pids, size_t count)
{
    const struct stack_sampler_options options = {.pids = pids, .count = count};
    struct stack_sampler *sampler = NULL;
    struct error err = {0};

    cr_assert_eq(stack_sampler_new(&options, &sampler, &err), 0, "%s", err.message);
    return sampler;
}

/* The frame of that function in a thread; the test fails without one. */
static size_t frame_of(const struct sample_set *set, size_t thread, const char *function)
{
    for (size_t i = 0; i < set->threads[thread].count; i++)
        if (!strcmp(sample_text(set, sample_place_of(set, thread, i)->function), function))
            return i;
    cr_assert(false, "no %s", function);
    return 0;
}

static bool may_sample(void)
{
    return geteuid() == 0;
}

Test(stack_sampler, names_the_calls_of_all_threads)
{
    struct sample_set *set = NULL;
    struct stack_sampler *sampler;
    int64_t distance;
    pid_t pid;

    if (!may_sample())
        cr_skip_test("needs root");
    pid = start_child(&distance);
    sampler = new_sampler(&pid, 1);
    cr_assert_eq(stack_sampler_sample(sampler, NULL), 0);
    cr_assert_eq(stack_sampler_sample(sampler, NULL), 0);
    cr_assert_eq(sample_set_new(&set), 0);
    cr_assert_eq(stack_sampler_fill(sampler, set, NULL), 0);
    cr_assert_eq(set->thread_count, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct sample_thread *thread = &set->threads[i];

        cr_assert_str_eq(sample_text(set, thread->label), i ? "0.1" : "0.0");
        cr_assert_not(thread->flags & (SAMPLE_MOVED | SAMPLE_INCOMPLETE), "thread %zu: %u", i, thread->flags);
        cr_assert(strstr(sample_text(set, thread->state), "sleeping"));
    }
    cr_assert_gt(frame_of(set, 0, "begin_thread"), 0);
    cr_assert_lt(frame_of(set, 1, "thread_main"), frame_of(set, 1, "wait_marked"), "the outermost first");
    cr_assert_eq(stack_sampler_count(sampler).stopped, 0, "both sleep");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    cr_assert_eq(stack_sampler_sample(sampler, NULL), -ESRCH, "it is gone");
    sample_set_free(set);
    stack_sampler_free(sampler);
}

/* /proc/PID shows nothing of a process whose main thread has ended; its other threads go on. */
Test(stack_sampler, a_process_without_its_main_thread)
{
    struct sample_set *set = NULL;
    struct stack_sampler *sampler;
    int64_t distance;
    pid_t pid;

    if (!may_sample())
        cr_skip_test("needs root");
    leaves_main = true;
    pid = start_child(&distance);
    leaves_main = false;
    sampler = new_sampler(&pid, 1);
    cr_assert_eq(stack_sampler_sample(sampler, NULL), 0);
    cr_assert_eq(sample_set_new(&set), 0);
    cr_assert_eq(stack_sampler_fill(sampler, set, NULL), 0);
    cr_assert_eq(set->thread_count, 1);
    cr_assert_gt(frame_of(set, 0, "wait_marked"), 0);
    cr_assert_not(set->threads[0].flags & SAMPLE_INCOMPLETE);
    sample_set_free(set);
    stack_sampler_free(sampler);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static int read_value(struct stack_sampler *sampler, size_t frame, struct frame_value value,
                      int64_t *ret_value)
{
    const struct frame_source source = stack_sampler_source(sampler);

    return source.read(source.context, 1, frame, &value, ret_value);
}

Test(stack_sampler, reads_values_in_frames)
{
    int64_t distance, value = 0, sp = 0;
    struct sample_set *set = NULL;
    struct stack_sampler *sampler;
    size_t frame;
    pid_t pid;

    if (!may_sample())
        cr_skip_test("needs root");
    pid = start_child(&distance);
    sampler = new_sampler(&pid, 1);
    cr_assert_eq(stack_sampler_sample(sampler, NULL), 0);
    cr_assert_eq(sample_set_new(&set), 0);
    cr_assert_eq(stack_sampler_fill(sampler, set, NULL), 0);
    frame = frame_of(set, 1, "wait_marked");
    cr_assert_eq(read_value(sampler, frame, (struct frame_value){FRAME_CFA, 0, distance, 4, true}, &value),
                 0);
    cr_assert_eq(value, MARK);
    /* The second word of the array is the CFA itself, which is the stack pointer in the caller. */
    cr_assert_eq(
        read_value(sampler, frame, (struct frame_value){FRAME_CFA, 0, distance + 8, 8, false}, &value), 0);
    cr_assert_eq(read_value(sampler, frame - 1, (struct frame_value){FRAME_REGISTER, 7, 0, 8, false}, &sp),
                 0);
    cr_assert_eq(sp, value);
    /* Registers that calls may change are not known in a caller. */
    cr_assert_eq(read_value(sampler, frame, (struct frame_value){FRAME_REGISTER, 0, 0, 8, false}, &value),
                 -ENODATA);
    cr_assert_eq(read_value(sampler, frame, (struct frame_value){FRAME_CFA, 0, 1 << 30, 4, true}, &value),
                 -ENODATA);
    cr_assert_eq(read_value(sampler, 1000, (struct frame_value){FRAME_CFA, 0, 0, 4, true}, &value), -EINVAL);
    sample_set_free(set);
    stack_sampler_free(sampler);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* A global that a child has set reads as the child has it. */
static volatile int64_t global = 7;

Test(stack_sampler, reads_globals_of_threads_that_sleep)
{
    struct sample_set *set = NULL;
    struct stack_sampler *sampler;
    const struct sample_place *place;
    int64_t distance, value = 0;
    size_t frame;
    pid_t pid;

    if (!may_sample())
        cr_skip_test("needs root");
    global = -12;
    pid = start_child(&distance);
    global = 7;
    sampler = new_sampler(&pid, 1);
    cr_assert_eq(stack_sampler_sample(sampler, NULL), 0);
    cr_assert_eq(sample_set_new(&set), 0);
    cr_assert_eq(stack_sampler_fill(sampler, set, NULL), 0);
    frame = frame_of(set, 1, "wait_marked");
    place = sample_place_of(set, 1, frame);
    /* The image is loaded here as it is there: link-time address = address - (here - entry). */
    cr_assert_eq(read_value(sampler, frame,
                            (struct frame_value){FRAME_ADDRESS, 0,
                                                 (int64_t)((uint64_t)(uintptr_t)&global -
                                                           ((uint64_t)(uintptr_t)wait_marked - place->entry)),
                                                 8, true},
                            &value),
                 0);
    cr_assert_eq(value, -12);
    sample_set_free(set);
    stack_sampler_free(sampler);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

Test(stack_sampler, a_process_that_is_not_there)
{
    const pid_t nobody = 0x3fffffff;
    struct error err = {0};
    struct stack_sampler *sampler;

    if (!may_sample())
        cr_skip_test("needs root");
    sampler = new_sampler(&nobody, 1);
    cr_assert_eq(stack_sampler_sample(sampler, &err), -ESRCH);
    cr_assert(*err.message);
    stack_sampler_free(sampler);
}
