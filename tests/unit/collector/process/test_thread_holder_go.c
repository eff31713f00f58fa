/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The thread holder on tests/programs/go/conducted, built with every Go that is there. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "collector/process/process.h"
#include "image/go/go_layout.h"
#include "tests/unit/collector/holder_target.h"

TestSuite(thread_holder_go, .timeout = 170);

#define HOLDS 1000
#define PREEMPTIONS 100

static const char *const versions[] = {"1.19", "1.22", "1.23"};

struct program {
    char folder[64], path[128];
    pid_t pid;
    int input;    /* it ends when this is closed */
    FILE *output; /* what it prints */
    uint64_t spin_start, spin_end;
    struct go_layout layout;
};

static void build(struct program *program, const char *version)
{
    char command[512];

    snprintf(program->folder, sizeof(program->folder), "/tmp/conducted.XXXXXX");
    cr_assert(mkdtemp(program->folder));
    snprintf(program->path, sizeof(program->path), "%s/conducted", program->folder);
    snprintf(command, sizeof(command),
             "cd tests/programs/go/conducted && GOTOOLCHAIN=local GOENV=off GOPROXY=off GOFLAGS=-mod=mod "
             "GO111MODULE=on /usr/lib/go-%s/bin/go build -o %s .",
             version, program->path);
    cr_assert_eq(system(command), 0, "%s", command); // NOLINT(bugprone-command-processor,cert-env33-c)
}

/* Stops as a held process does after exec, if a little before. */
static void start(struct program *program, const char *mode, const char *processors)
{
    int input[2], output[2], status;

    cr_assert_eq(pipe2(input, O_CLOEXEC), 0);
    cr_assert_eq(pipe2(output, O_CLOEXEC), 0);
    program->pid = fork();
    if (!program->pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(input[0], STDIN_FILENO);
        dup2(output[1], STDERR_FILENO);
        setenv("GOMAXPROCS", processors, 1);
        setenv("GOGC", "5", 1);
        raise(SIGSTOP);
        execl(program->path, program->path, mode, NULL);
        _exit(127);
    }
    cr_assert_eq(waitpid(program->pid, &status, WUNTRACED), program->pid);
    cr_assert(WIFSTOPPED(status));
    close(input[0]);
    close(output[1]);
    program->input = input[1];
    program->output = fdopen(output[0], "r");
}

static uint64_t end(struct program *program)
{
    uint64_t printed = 0;

    close(program->input);
    cr_expect_eq(fscanf(program->output, "%" SCNu64, &printed), 1);
    cr_expect_eq(target_status(program->pid), 0);
    fclose(program->output);
    unlink(program->path);
    rmdir(program->folder);
    return printed;
}

/* Conducts a thread, the `number`th of those there are, and waits until it has stopped; not for ever, since
 * the signal is lost when one of the runtime's is waiting already. */
static pid_t hold_any(struct thread_holder *holder, pid_t pid, unsigned number)
{
    uint64_t before = thread_holder_counts(holder).stops;
    AUTO_FREE pid_t *tids = NULL;
    size_t count;
    pid_t tid;

    cr_assert_eq(process_threads(pid, &tids, &count, NULL), 0);
    tid = tids[number % count];
    schedule(pid, tid);
    for (int i = 0; i < 10 && thread_holder_counts(holder).stops == before; i++)
        pause_briefly();
    return tid;
}

/* From 20 to 200 us. */
static uint64_t some_time(void *context, pid_t tid, const struct thread_holder_stop *stop)
{
    uint64_t *state = context;

    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return 20000 + (*state >> 33) % 180000;
}

static void hold_work(const char *version)
{
    uint64_t random = 1;
    struct thread_holder_options options = thread_holder_test_options(some_time, &random);
    struct thread_holder *holder = NULL;
    struct thread_holder_counts counts;
    struct program program = {0};

    build(&program, version);
    start(&program, "work", "4");
    options.pass_on = true;
    cr_assert_eq(thread_holder_new(&options, &holder, NULL), 0);
    target_hold(holder, program.pid);
    do {
        pid_t tid = hold_any(holder, program.pid, (unsigned)rand());

        if (rand() % 2)
            thread_holder_let_go(holder, tid);
        counts = thread_holder_counts(holder);
    } while (counts.holds < HOLDS);
    cr_expect_gt(end(&program), 0, "rounds of go %s", version);
    counts = thread_holder_counts(holder);
    cr_expect_eq(counts.let_go + counts.timed_out + counts.ended, counts.holds);
    cr_expect_gt(counts.let_go, 0);
    cr_expect_gt(counts.timed_out, 0);
    thread_holder_free(holder);
}

Test(thread_holder_go, holds_change_nothing)
{
    for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
        hold_work(versions[i]);
}

struct turns {
    const struct program *program;
    struct thread_holder *holder;
};

static uint64_t preempt(void *context, pid_t tid, const struct thread_holder_stop *stop)
{
    const struct turns *turns = context;
    const struct program *program = turns->program;
    struct user_regs_struct registers;
    struct thread_holder_preemption where = {
        .preempt_offset = (uint32_t)program->layout.offsets[GO_G_PREEMPT],
        .stackguard_offset = (uint32_t)program->layout.offsets[GO_G_STACKGUARD0],
    };

    if (thread_holder_registers(stop, &registers) || registers.rip < program->spin_start ||
        registers.rip >= program->spin_end)
        return 0;
    where.g = registers.r14;
    thread_holder_preempt(turns->holder, tid, &where);
    return 0;
}

/* One processor, two goroutines that never call anything: the other one's turn comes only by preemption. */
static void hold_in_turn(const char *version)
{
    CLEANUP(cleanup_elf_image) struct elf_image *image = NULL;
    struct program program = {0};
    struct turns turns = {.program = &program};
    struct thread_holder_options options = thread_holder_test_options(preempt, &turns);
    struct thread_holder_counts counts;

    build(&program, version);
    cr_assert_geq(elf_image_open(program.path, &image, NULL), 0);
    cr_assert_eq(go_layout_read(image, &program.layout, NULL), 0);
    start(&program, "turns", "1");
    cr_assert_eq(thread_holder_new(&options, &turns.holder, NULL), 0);
    target_hold(turns.holder, program.pid);
    cr_assert_eq(fscanf(program.output, "%" SCNu64 " %" SCNu64, &program.spin_start, &program.spin_end), 2);
    for (unsigned i = 0; thread_holder_counts(turns.holder).preempted < PREEMPTIONS; i++) {
        hold_any(turns.holder, program.pid, i);
        pause_briefly();
    }
    cr_expect_geq(end(&program), PREEMPTIONS, "turns of go %s", version);
    counts = thread_holder_counts(turns.holder);
    cr_expect_eq(counts.preempt_failed, 0);
    thread_holder_free(turns.holder);
    go_layout_release(&program.layout);
}

Test(thread_holder_go, a_preempted_goroutine_lets_the_other_one_run)
{
    for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
        hold_in_turn(versions[i]);
}
