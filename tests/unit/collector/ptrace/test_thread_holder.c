/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The thread holder on children of the test; test_thread_holder_go.c has programs in Go. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "tests/unit/collector/holder_target.h"

TestSuite(holder, .timeout = 60);

#define FOREVER 3600000000000ull

/* What `stopped` answers, and how often it was asked. */
struct score {
    _Atomic uint64_t answer;
    _Atomic uint64_t asked;
};

static uint64_t answer(void *context, pid_t tid, const struct thread_holder_stop *stop)
{
    struct score *score = context;

    score->asked++;
    return score->answer;
}

static struct thread_holder *thread_holder_start(const struct thread_holder_options *options)
{
    struct thread_holder *holder = NULL;
    struct error err = {0};

    cr_assert_eq(thread_holder_new(options, &holder, &err), 0, "%s", err.message);
    return holder;
}

static struct thread_holder *thread_holder_of(struct score *score)
{
    const struct thread_holder_options options = thread_holder_test_options(answer, score);

    return thread_holder_start(&options);
}

static uint64_t held(const struct thread_holder *holder)
{
    struct thread_holder_counts counts = thread_holder_counts(holder);

    return counts.holds - counts.let_go - counts.timed_out - counts.ended;
}

/* ------------------------------------------------------------------------------------------------- holds */

static void turn(struct scene *scene, int thread)
{
    scene->tids[thread] = gettid();
    while (!scene->end)
        scene->turns[thread]++;
}

static void *second_thread(void *argument)
{
    turn(argument, 1);
    return NULL;
}

static int two_threads(struct scene *scene)
{
    pthread_t second;

    pthread_create(&second, NULL, second_thread, scene);
    turn(scene, 0);
    pthread_join(second, NULL);
    return 7;
}

static void wait_until_both_turn(struct scene *scene)
{
    uint64_t first = scene->turns[0], second = scene->turns[1];

    WAIT_FOR(scene->turns[0] > first && scene->turns[1] > second);
}

Test(holder, holds_one_thread_while_the_other_runs_on)
{
    struct scene *scene = scene_new();
    struct score score = {.answer = FOREVER};
    pid_t pid = target_start(two_threads, scene);
    struct thread_holder *holder = thread_holder_of(&score);
    uint64_t first, second;

    target_hold(holder, pid);
    wait_until_both_turn(scene);
    cr_assert(schedule(pid, scene->tids[1])); /* which was made after thread_holder_seize */
    WAIT_FOR(held(holder) == 1);
    first = scene->turns[0];
    second = scene->turns[1];
    WAIT_FOR(scene->turns[0] > first + 1000);
    cr_expect_eq(scene->turns[1], second, "the thread is held");
    cr_expect_eq(thread_holder_let_go(holder, scene->tids[1]), 0);
    wait_until_both_turn(scene);
    scene->end = true;
    cr_expect_eq(target_status(pid), 7);
    cr_expect_eq(thread_holder_counts(holder).let_go, 1);
    cr_expect_eq(thread_holder_counts(holder).stops, 1);
    thread_holder_free(holder);
}

Test(holder, holds_several_threads_and_ends_holds_in_time)
{
    struct scene *scene = scene_new();
    struct score score = {.answer = FOREVER};
    pid_t pid = target_start(two_threads, scene);
    struct thread_holder *holder = thread_holder_of(&score);
    struct thread_holder_counts counts;

    target_hold(holder, pid);
    wait_until_both_turn(scene);
    schedule(pid, scene->tids[0]);
    WAIT_FOR(held(holder) == 1);
    score.answer = 3000000;
    schedule(pid, scene->tids[1]);
    WAIT_FOR(thread_holder_counts(holder).timed_out == 1);
    cr_expect_eq(held(holder), 1, "the other one's time is not over");
    score.answer = 0;
    schedule(pid, scene->tids[1]);
    WAIT_FOR(thread_holder_counts(holder).stops == 3);
    thread_holder_let_go(holder, scene->tids[0]);
    wait_until_both_turn(scene);
    scene->end = true;
    cr_expect_eq(target_status(pid), 7);
    counts = thread_holder_counts(holder);
    cr_expect_eq(counts.holds, 2);
    cr_expect_eq(counts.let_go, 1);
    cr_expect_geq(counts.held_ns, 3000000);
    thread_holder_free(holder);
}

Test(holder, lets_go_what_it_holds_when_it_ends)
{
    struct scene *scene = scene_new();
    struct score score = {.answer = FOREVER};
    pid_t pid = target_start(two_threads, scene);
    struct thread_holder *holder = thread_holder_of(&score);

    target_hold(holder, pid);
    wait_until_both_turn(scene);
    schedule(pid, scene->tids[0]);
    schedule(pid, scene->tids[1]);
    WAIT_FOR(held(holder) == 2);
    thread_holder_free(holder);
    wait_until_both_turn(scene);
    scene->end = true;
    cr_expect_eq(target_status(pid), 7);
}

Test(holder, a_held_thread_can_be_killed)
{
    struct scene *scene = scene_new();
    struct score score = {.answer = FOREVER};
    pid_t pid = target_start(two_threads, scene);
    struct thread_holder *holder = thread_holder_of(&score);

    target_hold(holder, pid);
    wait_until_both_turn(scene);
    schedule(pid, scene->tids[1]);
    WAIT_FOR(held(holder) == 1);
    kill(pid, SIGKILL);
    cr_expect_eq(target_status(pid), 128 + SIGKILL);
    WAIT_FOR(held(holder) == 0);
    cr_expect_eq(thread_holder_counts(holder).ended, 1);
    thread_holder_let_go(holder, scene->tids[1]);
    thread_holder_free(holder);
}

static int exits_beside_a_held_thread(struct scene *scene)
{
    pthread_t second;

    pthread_create(&second, NULL, second_thread, scene);
    WAIT_FOR(scene->end);
    return 9;
}

Test(holder, a_process_can_exit_while_a_thread_is_held)
{
    struct scene *scene = scene_new();
    struct score score = {.answer = FOREVER};
    pid_t pid = target_start(exits_beside_a_held_thread, scene);
    struct thread_holder *holder = thread_holder_of(&score);

    target_hold(holder, pid);
    WAIT_FOR(scene->turns[1]);
    schedule(pid, scene->tids[1]);
    WAIT_FOR(held(holder) == 1);
    scene->end = true;
    cr_expect_eq(target_status(pid), 9);
    WAIT_FOR(held(holder) == 0);
    thread_holder_free(holder);
}

/* ----------------------------------------------------------------------------------------------- signals */

static struct scene *handled;

static void handler(int number, siginfo_t *signal, void *context)
{
    handled->value = signal->si_value.sival_int;
    handled->code = signal->si_code;
    handled->signals++;
}

static int catches(struct scene *scene)
{
    const struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};

    handled = scene;
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGURG, &action, NULL);
    scene->tids[0] = getpid();
    scene->step = 1;
    WAIT_FOR(scene->end);
    return 3;
}

static pid_t start_catching(struct thread_holder *holder, struct scene *scene)
{
    pid_t pid = target_start(catches, scene);

    target_hold(holder, pid);
    WAIT_FOR(scene->step == 1);
    return pid;
}

static void end_catching(struct thread_holder *holder, struct scene *scene, pid_t pid)
{
    scene->end = true;
    cr_expect_eq(target_status(pid), 3);
    thread_holder_free(holder);
}

Test(holder, others_signals_arrive_as_they_were_sent)
{
    struct scene *scene = scene_new();
    struct score score = {.answer = 0};
    struct thread_holder *holder = thread_holder_of(&score);
    pid_t pid = start_catching(holder, scene);

    sigqueue(pid, SIGUSR1, (union sigval){.sival_int = 4711});
    WAIT_FOR(scene->signals == 1);
    cr_expect_eq(scene->value, 4711);
    cr_expect_eq(scene->code, SI_QUEUE);
    kill(pid, SIGURG);
    WAIT_FOR(scene->signals == 2);
    cr_expect_eq(scene->code, SI_USER);
    cr_expect_eq(thread_holder_counts(holder).foreign, 1);
    cr_expect_eq(score.asked, 0);
    kill(pid, SIGTERM);
    cr_expect_eq(target_status(pid), 128 + SIGTERM);
    thread_holder_free(holder);
}

Test(holder, its_own_signal_is_not_seen)
{
    struct scene *scene = scene_new();
    struct score score = {.answer = 1000};
    struct thread_holder *holder = thread_holder_of(&score);
    pid_t pid = start_catching(holder, scene);

    schedule(pid, pid);
    WAIT_FOR(thread_holder_counts(holder).timed_out == 1);
    score.answer = 0;
    schedule(pid, pid);
    WAIT_FOR(score.asked == 2);
    kill(pid, SIGUSR1); /* what comes after it has come */
    WAIT_FOR(scene->signals);
    cr_expect_eq(scene->code, SI_USER);
    cr_expect_eq(scene->signals, 1);
    end_catching(holder, scene, pid);
}

Test(holder, its_own_signal_is_passed_on_where_that_is_wanted)
{
    struct scene *scene = scene_new();
    struct score score = {.answer = 1000};
    struct thread_holder_options options = thread_holder_test_options(answer, &score);
    struct thread_holder *holder;
    pid_t pid;

    options.pass_on = true;
    holder = thread_holder_start(&options);
    pid = start_catching(holder, scene);
    schedule(pid, pid);
    WAIT_FOR(scene->signals == 1);
    cr_expect_eq(scene->code, SI_QUEUE);
    end_catching(holder, scene, pid);
}

Test(holder, a_signal_that_nobody_wants_is_passed_on)
{
    struct scene *scene = scene_new();
    struct score score = {.answer = THREAD_HOLDER_NOT_MINE};
    struct thread_holder *holder = thread_holder_of(&score);
    pid_t pid = start_catching(holder, scene);

    schedule(pid, pid);
    WAIT_FOR(scene->signals == 1);
    cr_expect_eq(thread_holder_counts(holder).foreign, 1);
    cr_expect_eq(thread_holder_counts(holder).holds, 0);
    end_catching(holder, scene, pid);
}

/* The kernel's SIGURG is the default: one by sigqueue from a process is not. */
Test(holder, by_default_only_the_kernels_signals_count)
{
    struct scene *scene = scene_new();
    struct score score = {.answer = FOREVER};
    const struct thread_holder_options options = {.stopped = answer, .context = &score};
    struct thread_holder *holder = thread_holder_start(&options);
    pid_t pid = start_catching(holder, scene);

    schedule(pid, pid);
    WAIT_FOR(scene->signals == 1);
    cr_expect_eq(score.asked, 0);
    end_catching(holder, scene, pid);
}

/* Waits for the test to write into the pipe, with a call that a signal would end. */
static int waits_for_the_pipe(struct scene *scene)
{
    struct epoll_event event = {.events = EPOLLIN};
    int epoll = epoll_create1(0);

    signal(SIGUSR2, SIG_IGN);
    epoll_ctl(epoll, EPOLL_CTL_ADD, scene->pipe[0], &event);
    scene->step = 1;
    return epoll_wait(epoll, &event, 1, -1) == 1 ? 0 : 1;
}

static bool sleeps(pid_t pid)
{
    char path[64], state = '?';
    FILE *stat;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    stat = fopen(path, "re");
    cr_assert(stat);
    cr_assert_eq(fscanf(stat, "%*d (%*[^)]) %c", &state), 1);
    fclose(stat);
    return state == 'S';
}

Test(holder, ignored_signals_interrupt_no_call)
{
    struct scene *scene = scene_new();
    struct score score = {.answer = 0};
    struct thread_holder *holder = thread_holder_of(&score);
    const int ignored[] = {SIGURG, SIGCHLD, SIGWINCH, SIGUSR2};
    pid_t pid;

    cr_assert_eq(pipe(scene->pipe), 0);
    pid = target_start(waits_for_the_pipe, scene);
    target_hold(holder, pid);
    WAIT_FOR(scene->step == 1);
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++) {
        uint64_t before = thread_holder_counts(holder).signals;

        WAIT_FOR(sleeps(pid));
        kill(pid, ignored[i]);
        WAIT_FOR(thread_holder_counts(holder).signals > before);
    }
    WAIT_FOR(sleeps(pid));
    cr_assert_eq(write(scene->pipe[1], "", 1), 1);
    cr_expect_eq(target_status(pid), 0);
    thread_holder_free(holder);
}

/* ------------------------------------------------------------------------------------------------- stops */

Test(holder, stops_of_job_control_are_stops)
{
    struct scene *scene = scene_new();
    struct score score = {.answer = 0};
    pid_t pid = target_start(two_threads, scene);
    struct thread_holder *holder = thread_holder_of(&score);
    uint64_t first, second;
    int status;

    setpgid(pid, pid); /* a job: in a group without a parent SIGTSTP does nothing */
    target_hold(holder, pid);
    wait_until_both_turn(scene);
    for (int i = 0; i < 2; i++) {
        const int number = i ? SIGTSTP : SIGSTOP;

        kill(pid, number);
        cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
        cr_assert(WIFSTOPPED(status));
        cr_expect_eq(WSTOPSIG(status), number);
        first = scene->turns[0];
        second = scene->turns[1];
        for (int j = 0; j < 10; j++)
            pause_briefly();
        cr_expect_eq(scene->turns[0], first);
        cr_expect_eq(scene->turns[1], second);
        kill(pid, SIGCONT);
        cr_assert_eq(waitpid(pid, &status, WCONTINUED), pid);
        cr_assert(WIFCONTINUED(status));
        wait_until_both_turn(scene);
    }
    scene->end = true;
    cr_expect_eq(target_status(pid), 7);
    thread_holder_free(holder);
}

Test(holder, a_stopped_process_stays_stopped_when_the_holder_ends)
{
    struct scene *scene = scene_new();
    struct score score = {.answer = 0};
    pid_t pid = target_start(two_threads, scene);
    struct thread_holder *holder = thread_holder_of(&score);

    cr_assert_eq(thread_holder_seize(holder, pid, NULL), 0);
    thread_holder_free(holder);
    for (int i = 0; i < 10; i++)
        pause_briefly();
    cr_expect_eq(scene->turns[0], 0);
    kill(pid, SIGCONT);
    wait_until_both_turn(scene);
    scene->end = true;
    cr_expect_eq(target_status(pid), 7);
}

/* --------------------------------------------------------------------------------- exec, children, ends */

static int makes_a_child(struct scene *scene)
{
    pid_t child = fork();
    int status;

    if (!child) {
        turn(scene, 1);
        _exit(5);
    }
    return waitpid(child, &status, 0) == child ? WEXITSTATUS(status) + 1 : 0;
}

Test(holder, children_are_conducted_as_well)
{
    struct scene *scene = scene_new();
    struct score score = {.answer = FOREVER};
    struct thread_holder *holder = thread_holder_of(&score);
    pid_t pid = target_start(makes_a_child, scene);
    uint64_t turns;

    target_hold(holder, pid);
    WAIT_FOR(scene->turns[1]);
    schedule(scene->tids[1], scene->tids[1]);
    WAIT_FOR(held(holder) == 1);
    turns = scene->turns[1];
    for (int i = 0; i < 10; i++)
        pause_briefly();
    cr_expect_eq(scene->turns[1], turns);
    scene->end = true;
    thread_holder_let_go(holder, scene->tids[1]);
    cr_expect_eq(target_status(pid), 6);
    thread_holder_free(holder);
}

static void *becomes_a_shell(void *argument)
{
    struct scene *scene = argument;

    WAIT_FOR(scene->end);
    execl("/bin/sh", "sh", "-c", "true; (exit 4); exit $(($? + 7))", NULL);
    return NULL;
}

/* Exec by another thread than the main one, which is held: it goes, and the other one has its number. */
static int main_thread_turns(struct scene *scene)
{
    pthread_t second;

    pthread_create(&second, NULL, becomes_a_shell, scene);
    scene->tids[0] = gettid();
    for (;;)
        scene->turns[0]++;
    return 0;
}

Test(holder, exec_ends_holds)
{
    struct scene *scene = scene_new();
    struct score score = {.answer = FOREVER};
    struct thread_holder *holder = thread_holder_of(&score);
    pid_t pid = target_start(main_thread_turns, scene);

    target_hold(holder, pid);
    WAIT_FOR(scene->turns[0]);
    schedule(pid, pid);
    WAIT_FOR(held(holder) == 1);
    scene->end = true;
    cr_expect_eq(target_status(pid), 11);
    cr_expect_eq(held(holder), 0);
    cr_expect_eq(thread_holder_counts(holder).ended, 1);
    thread_holder_free(holder);
}

/* Ends the process itself: what the sanitizers do at exit() they cannot do while somebody traces. */
static void *last_thread(void *context)
{
    second_thread(context);
    _exit(0);
}

static int leaves_a_zombie_leader(struct scene *scene)
{
    pthread_t second;

    pthread_create(&second, NULL, last_thread, scene);
    pthread_exit(NULL);
}

Test(holder, the_main_thread_may_end_first)
{
    struct scene *scene = scene_new();
    struct score score = {.answer = FOREVER};
    struct thread_holder *holder = thread_holder_of(&score);
    pid_t pid = target_start(leaves_a_zombie_leader, scene);

    target_hold(holder, pid);
    WAIT_FOR(scene->turns[1]);
    schedule(pid, scene->tids[1]);
    WAIT_FOR(held(holder) == 1);
    thread_holder_let_go(holder, scene->tids[1]);
    scene->end = true;
    cr_expect_eq(target_status(pid), 0);
    thread_holder_free(holder);
}

Test(holder, what_cannot_be_traced_is_said)
{
    struct score score = {.answer = 0};
    struct thread_holder *first = thread_holder_of(&score), *second = thread_holder_of(&score);
    struct scene *scene = scene_new();
    pid_t pid = target_start(two_threads, scene), gone = fork();
    struct error err = {0};

    if (!gone)
        _exit(0);
    target_status(gone);
    cr_expect_eq(thread_holder_seize(first, gone, &err), -ESRCH);
    cr_expect(strstr(err.message, "cannot trace process"));
    cr_expect_eq(thread_holder_seize(first, pid, NULL), 0);
    cr_expect_eq(thread_holder_seize(second, pid, NULL), -EPERM);
    kill(pid, SIGKILL);
    target_status(pid);
    thread_holder_free(first);
    thread_holder_free(second);
}

/* ------------------------------------------------------------------------------------- sudden deaths */

/* What a recorder would do, until it is killed. */
static int conducts_until_killed(struct scene *scene, pid_t target)
{
    struct score score = {.answer = FOREVER};
    struct thread_holder *holder = thread_holder_of(&score);

    target_hold(holder, target);
    wait_until_both_turn(scene);
    schedule(target, scene->tids[1]);
    WAIT_FOR(held(holder) == 1);
    scene->value = thread_holder_pid(holder);
    for (;;)
        pause();
    return 0;
}

Test(holder, the_target_outlives_a_killed_recorder)
{
    struct scene *scene = scene_new();
    pid_t target = target_start(two_threads, scene), recorder = fork();

    if (!recorder)
        _exit(conducts_until_killed(scene, target));
    WAIT_FOR(scene->value);
    kill(recorder, SIGKILL);
    cr_expect_eq(target_status(recorder), 128 + SIGKILL);
    wait_until_both_turn(scene);
    WAIT_FOR(kill(scene->value, 0) && errno == ESRCH); /* the thread holder dies with its maker */
    scene->end = true;
    cr_expect_eq(target_status(target), 7);
}

Test(holder, its_own_sudden_death_is_noticed)
{
    struct scene *scene = scene_new();
    struct score score = {.answer = FOREVER};
    struct thread_holder *holder = thread_holder_of(&score);
    pid_t pid = target_start(two_threads, scene);

    target_hold(holder, pid);
    wait_until_both_turn(scene);
    schedule(pid, scene->tids[0]);
    WAIT_FOR(held(holder) == 1);
    kill(thread_holder_pid(holder), SIGKILL);
    wait_until_both_turn(scene);
    WAIT_FOR(thread_holder_let_go(holder, pid) == -ESRCH);
    cr_expect_eq(thread_holder_seize(holder, pid, NULL), -ESRCH);
    scene->end = true;
    cr_expect_eq(target_status(pid), 7);
    thread_holder_free(holder);
}
