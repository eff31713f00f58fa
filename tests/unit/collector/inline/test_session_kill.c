/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A session is killed at each of its system calls, before it and behind it, by a tracer of this test's. The
 * target must be whole then: it runs on as it did, with its registers, signals and descriptors, and its code
 * is the file's, or is made so by the next recording.
 *
 * SESSION_KILLS says how many instants are tried, spread evenly (16); 0: all of them, which takes minutes.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "collector/inline/area.h"
#include "collector/inline/inline.h"
#include "collector/inline/stale_patches.h"
#include "collector/memory/text_diff.h"
#include "collector/plan/plan.h"
#include "collector/process/maps.h"
#include "collector/process/process.h"
#include "image/elf/elf_image.h"
#include "image/functions/functions.h"
#include "tests/unit/collector/session_target.h"

TestSuite(session_kill, .timeout = 3000);

#define CALL_STOP (SIGTRAP | 0x80)
#define PATIENCE_US 60000000u

/* ------------------------------------------------------------------------------------ the killer */

/* Lets processes run, as it is told of their stops, and kills the session before it makes, or is back from,
 * its system call number `at`. */
struct killer {
    size_t at, seen;
    pid_t sessions[16]; /* processes that have called ptrace(2) */
    size_t count;
    bool killed;
};

static bool is_session(struct killer *killer, pid_t pid)
{
    struct __ptrace_syscall_info info = {0};

    for (size_t i = 0; i < killer->count; i++)
        if (killer->sessions[i] == pid)
            return true;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof(info), &info) <= 0 ||
        info.op != PTRACE_SYSCALL_INFO_ENTRY || info.entry.nr != SYS_ptrace)
        return false;
    cr_assert_lt(killer->count, ARRAY_SIZE(killer->sessions));
    killer->sessions[killer->count++] = pid;
    return true;
}

static void on_stop(struct killer *killer, pid_t pid, int status)
{
    int stop = WSTOPSIG(status), event = status >> 16;

    if (stop == CALL_STOP && is_session(killer, pid) && killer->seen++ == killer->at) {
        killer->killed = true;
        kill(pid, SIGKILL);
        return;
    }
    ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(intptr_t)(event || stop == CALL_STOP ? 0 : stop));
}

/* Runs `driver`, whose children are sessions and whatever else. Returns how many instants there were. */
static size_t run_killed(void (*driver)(void), size_t at, bool *ret_killed)
{
    struct killer killer = {.at = at};
    pid_t child, pid;
    int gate[2], status;

    cr_assert_eq(pipe(gate), 0);
    child = fork();
    if (!child) {
        char byte;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (read(gate[0], &byte, 1) == 1)
            driver();
        _exit(0);
    }
    cr_assert_eq(ptrace(PTRACE_SEIZE, child, NULL, (void *)(PTRACE_O_TRACEFORK | PTRACE_O_TRACESYSGOOD)), 0);
    cr_assert_eq(write(gate[1], "", 1), 1);
    close(gate[0]);
    close(gate[1]);
    /* The target is a child of this process, too: nothing is heard of it but its end. */
    while ((pid = waitpid(-1, &status, __WALL)) > 0) {
        if (WIFSTOPPED(status))
            on_stop(&killer, pid, status);
        else if (pid == child)
            break;
        else
            cr_assert_neq(pid, session_target.pid, "instant %zu: the target has died, status 0x%x", at,
                          (unsigned)status);
    }
    *ret_killed = killer.killed;
    return killer.seen;
}

/* ------------------------------------------------------------------------------------ the drivers */

static struct {
    struct elf_image *image;
    struct image_function *functions;
    size_t count;
    struct plan *plan;
    struct inline_image *inlined;
    uint64_t load_bias;
} program;

static bool is_watched(void *context, struct elf_image *image, const struct image_function *function)
{
    return !strncmp(function->name, SESSION_WATCHED, strlen(SESSION_WATCHED));
}

static void open_program(void)
{
    const struct plan_options options = {.want = is_watched, .returns = PLAN_RETURNS_INFER};
    struct error err = {0};
    uint64_t start, offset;

    cr_assert_eq(elf_image_open("/proc/self/exe", &program.image, &err), 0, "%s", err.message);
    cr_assert_eq(image_functions(program.image, &program.functions, &program.count, &err), 0);
    cr_assert_eq(plan_make(program.image, program.functions, program.count, &options, &program.plan, &err),
                 0);
    cr_assert_eq(inline_image_new(program.image, program.functions, program.count, program.plan,
                                  &program.inlined, &err),
                 0, "%s", err.message);
    cr_assert_eq(process_exe_mapping(getpid(), &start, &offset), 0);
    cr_assert_eq(elf_image_load_bias(program.image, start, offset, &program.load_bias), 0);
}

static int consume_calls(void *context, uint32_t tid, const struct agent_record *records, size_t count,
                         uint64_t ns)
{
    return 0;
}

static int take_loss(void *context, uint32_t tid, uint64_t calls)
{
    return 0;
}

static int take_distrust(void *context, pid_t pid, const char *why)
{
    return 0;
}

/* Inline probes come, some go and come again, and all go. What fails is left to the next recording. */
static void attach_change_detach(void)
{
    const struct inline_options options = {.ring_bytes = 1 << 18};
    const struct backend_sink sink = {.calls = consume_calls, .lost = take_loss, .distrusted = take_distrust};
    const struct backend_target target = {.pid = session_target.pid,
                                          .inlined = program.inlined,
                                          .functions = program.functions,
                                          .load_bias = program.load_bias};
    AUTO_FREE bool *out = calloc(program.count + 1, sizeof(*out));
    const struct backend_choice choice = {.out = out};
    struct backend *backend = NULL;

    if (!out || inline_backend_new(&options, &sink, &backend, NULL))
        _exit(1);
    if (!backend->of->attach_process(backend, &target, NULL)) {
        out[session_watched(program.functions, program.count)] = true;
        backend->of->choose(backend, program.inlined, &choice, NULL);
        memset(out, 0, program.count);
        backend->of->choose(backend, program.inlined, &choice, NULL);
        backend->of->detach(backend, NULL);
    }
    backend->of->free(backend);
}

static int call_kernel(void *context, struct remote *remote, struct error *err)
{
    const uint64_t none[6] = {0}, closing[6] = {1000000};
    int64_t result = 0;
    int r = remote_call(remote, SYS_getpid, none, &result, err);

    if (!r)
        r = remote_undo(remote, SYS_close, closing, err);
    if (!r)
        r = remote_call(remote, SYS_getppid, none, &result, err);
    if (!r)
        remote_undo_drop(remote);
    return r;
}

static void calls_only(void)
{
    remote_session(session_target.pid, call_kernel, NULL, NULL);
}

/* ------------------------------------------------------------------------------------ the target afterwards
 */

static bool has_area(pid_t pid)
{
    char path[64], line[512];
    AUTO_FCLOSE FILE *maps = NULL;
    bool has = false;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    maps = fopen(path, "re");
    cr_assert_not_null(maps);
    while (!has && fgets(line, sizeof(line), maps))
        has = strstr(line, "memfd:" AGENT_MAGIC);
    return has;
}

static void expect_text_of_file(size_t at)
{
    AUTO_FREE uint8_t *now = NULL;

    for (size_t i = 0; i < program.count; i++) {
        const struct image_function *function = &program.functions[i];
        const uint8_t *wanted;
        size_t size = 0;

        if (!program.inlined->chosen[i])
            continue;
        wanted = elf_image_code(program.image, function->address, &size);
        size = size < function->size ? size : function->size;
        now = realloc(now, size);
        cr_assert(wanted && now);
        session_target_read(function->address + program.load_bias, now, size);
        cr_assert(!memcmp(now, wanted, size), "instant %zu: %s is not as in the file", at, function->name);
    }
}

/* What the next recording does first. A thread may be in a stub at that moment, and the area stays. */
static void sweep(size_t at)
{
    struct error err = {0};

    for (unsigned waited = 0; waited < PATIENCE_US; waited += 1000) {
        cr_assert_eq(stale_patches_clean(session_target.pid, &err), 0, "instant %zu: %s", at, err.message);
        if (!has_area(session_target.pid))
            return;
        usleep(1000);
    }
    cr_assert_fail("instant %zu: an area stays", at);
}

/* Kills a session at instants that are spread evenly over all. */
static void kill_at_instants(void (*driver)(void), bool patches)
{
    const char *wanted = getenv("SESSION_KILLS");
    size_t kills = wanted ? strtoul(wanted, NULL, 10) : 16, tried = 0;
    bool killed;
    size_t all = run_killed(driver, SIZE_MAX, &killed), step;

    cr_assert(!killed && all > 100);
    session_target_expect_whole(SIZE_MAX);
    step = kills && all > kills ? all / kills : 1;
    for (size_t at = (size_t)getpid() % step; at < all; at += step) {
        run_killed(driver, at, &killed);
        if (patches) {
            sweep(at);
            expect_text_of_file(at);
        }
        session_target_expect_whole(at);
        tried += killed;
    }
    cr_assert_gt(tried, all / step / 2);
    fprintf(stderr, "# killed at %zu of %zu instants\n", tried, all);
    session_target_end();
}

Test(session_kill, inline_probes_of_a_program_that_computes)
{
    open_program();
    session_target_begin(SESSION_COMPUTES);
    kill_at_instants(attach_change_detach, true);
}

Test(session_kill, inline_probes_of_a_program_that_waits)
{
    open_program();
    session_target_begin(SESSION_WAITS);
    kill_at_instants(attach_change_detach, true);
}

Test(session_kill, calls_of_a_go_program)
{
    session_target_begin(SESSION_GO);
    kill_at_instants(calls_only, false);
}
