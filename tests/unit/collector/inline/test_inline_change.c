/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inline probes are taken out of a process that runs, put in again, and its children get what it has. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "collector/inline/inline.h"
#include "collector/inline/inline_code.h"
#include "collector/inline/inline_state.h"
#include "collector/plan/plan.h"
#include "collector/process/process.h"
#include "image/elf/elf_image.h"
#include "image/functions/functions.h"

#define WATCHED __attribute__((noinline, noclone))
#define CALLS 100
#define BURN_NS 20000000u

/* What the target is told to do, and has done. */
enum { WAIT, FORK, CALL, BURN, DONE };

static struct {
    atomic_int order[2]; /* of the target, and of its child */
    atomic_long sum[2];
    pid_t child;
} * shared;

static volatile long sum;

WATCHED static void watched_one(long n)
{
    sum = sum + n;
}

WATCHED static void watched_two(long n)
{
    sum = sum + 1000 * n;
}

static void burn(void)
{
    uint64_t begun = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

    while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < begun + BURN_NS)
        continue;
}

static void target_main(void)
{
    unsigned number = 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        int order = atomic_load(&shared->order[number]);

        if (order == FORK) {
            pid_t child = fork();

            if (!child) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                number = 1;
                continue;
            }
            shared->child = child;
        }
        for (unsigned i = 0; order == CALL && i < CALLS; i++) {
            watched_one(1);
            watched_two(1);
        }
        if (order == BURN)
            burn();
        atomic_store(&shared->sum[number], sum);
        if (order != WAIT)
            atomic_store(&shared->order[number], DONE);
        usleep(100);
    }
}

static void have_done(unsigned number, int order)
{
    atomic_store(&shared->order[number], order);
    for (unsigned i = 0; i < 100000 && atomic_load(&shared->order[number]) != DONE; i++)
        usleep(100);
    cr_assert_eq(atomic_load(&shared->order[number]), DONE);
}

/* ------------------------------------------------------------------------------------ the tracer */

static struct {
    struct elf_image *image;
    struct image_function *functions;
    size_t count, one, two;
    struct plan *plan;
    struct inline_image *inlined;
    struct backend *backend;
    uint64_t load_bias;
    size_t calls;
    pid_t pid, other; /* the target; one that does nothing, or 0 */
    bool *out;
} world;

static int count_calls(void *context, uint32_t tid, const struct agent_record *records, size_t count,
                       uint64_t ns)
{
    world.calls += count;
    return 0;
}

static int none_lost(void *context, uint32_t tid, uint64_t calls)
{
    cr_assert_eq(calls, 0);
    return 0;
}

static int none_distrusted(void *context, pid_t pid, const char *why)
{
    cr_assert_fail("process %d is not trusted: %s", (int)pid, why);
    return 0;
}

static bool is_watched(void *context, struct elf_image *image, const struct image_function *function)
{
    return !strncmp(function->name, "watched_", strlen("watched_"));
}

static void plan(void)
{
    const struct plan_options options = {.want = is_watched, .returns = PLAN_RETURNS_INFER};
    struct error err = {0};

    cr_assert_eq(elf_image_open("/proc/self/exe", &world.image, &err), 0, "%s", err.message);
    cr_assert_eq(image_functions(world.image, &world.functions, &world.count, &err), 0);
    cr_assert_eq(plan_make(world.image, world.functions, world.count, &options, &world.plan, &err), 0);
    cr_assert_eq(
        inline_image_new(world.image, world.functions, world.count, world.plan, &world.inlined, &err), 0,
        "%s", err.message);
    cr_assert_eq(world.inlined->chosen_count, 2);
    elf_image_forget(world.image); /* as between two processes that run it: stubs do not need the file */
    for (size_t i = 0; i < world.count; i++) {
        if (!strcmp(world.functions[i].name, "watched_one"))
            world.one = i;
        if (!strcmp(world.functions[i].name, "watched_two"))
            world.two = i;
    }
    world.out = calloc(world.count + 1, sizeof(*world.out));
}

static void open_backend(void)
{
    const struct inline_options options = {.ring_bytes = 1 << 20};
    const struct backend_sink sink = {.calls = count_calls, .lost = none_lost, .distrusted = none_distrusted};
    struct error err = {0};

    cr_assert_eq(inline_backend_new(&options, &sink, &world.backend, &err), 0, "%s", err.message);
}

static void patch(pid_t pid)
{
    struct backend_target target = {
        .pid = pid, .inlined = world.inlined, .functions = world.functions, .out = world.out};
    struct error err = {0};
    uint64_t start, offset;

    cr_assert_eq(process_exe_mapping(pid, &start, &offset), 0);
    cr_assert_eq(elf_image_load_bias(world.image, start, offset, &world.load_bias), 0);
    target.load_bias = world.load_bias;
    cr_assert_eq(world.backend->of->attach_process(world.backend, &target, &err), 0, "%s", err.message);
}

static void begin_with(bool one_out, bool two_out)
{
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(shared, MAP_FAILED);
    plan();
    world.out[world.one] = one_out;
    world.out[world.two] = two_out;
    world.pid = fork();
    if (!world.pid)
        target_main();
    open_backend();
    patch(world.pid);
}

static void begin(void)
{
    begin_with(false, false);
}

static void take_out(bool one, bool two)
{
    const struct backend_choice choice = {.out = world.out};
    struct error err = {0};

    world.out[world.one] = one;
    world.out[world.two] = two;
    cr_assert_eq(world.backend->of->choose(world.backend, world.inlined, &choice, &err), 0, "%s",
                 err.message);
}

/* A process of its own that runs the same program and does nothing: from before there is an area, which it
 * would have, too. */
static void start_other(void)
{
    world.other = fork();
    if (world.other)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        pause();
}

static void choose(const bool *out, pid_t ahead, const bool *out_ahead)
{
    const struct backend_choice choice = {.out = out, .ahead = ahead, .out_ahead = out_ahead};
    struct error err = {0};

    cr_assert_eq(world.backend->of->choose(world.backend, world.inlined, &choice, &err), 0, "%s",
                 err.message);
}

/* Has the target fork, and returns when that was. */
static uint64_t fork_target(void)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC);

    have_done(0, FORK);
    return now;
}

/* Whether a function's code in a process is not as in the file. */
static bool is_patched(pid_t pid, size_t function)
{
    uint64_t address = world.functions[function].address;
    uint8_t code[2 * DISPLACE_JUMP] = {0}; /* an instruction may stay in front of the jump */
    char path[64];
    size_t size;
    FILE *memory;

    snprintf(path, sizeof(path), "/proc/%d/mem", pid);
    memory = fopen(path, "re");
    cr_assert(memory && !fseeko(memory, (off_t)(address + world.load_bias), SEEK_SET) &&
              fread(code, sizeof(code), 1, memory) == 1);
    fclose(memory);
    return memcmp(code, elf_image_code(world.image, address, &size), sizeof(code)) != 0;
}

/* Whether the page that a function begins on is the process's own. */
static bool is_copied(pid_t pid, size_t function)
{
    uint64_t address = world.functions[function].address + world.load_bias, word = 0;
    char path[64];
    FILE *map;

    snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
    map = fopen(path, "re");
    cr_assert(map && !fseeko(map, (off_t)(address / 4096 * sizeof(word)), SEEK_SET) &&
              fread(&word, sizeof(word), 1, map) == 1);
    fclose(map);
    return word >> 63 && !(word >> 61 & 1); /* present, and not of a file */
}

static void expect_patched(pid_t pid, bool one, bool two)
{
    cr_expect_eq(is_patched(pid, world.one), one);
    cr_expect_eq(is_patched(pid, world.two), two);
}

static int tell_fork(uint64_t ns)
{
    const struct inline_birth birth = {.parent = world.pid, .child = shared->child, .ns = ns};

    return inline_fork(inline_of(world.backend), &birth);
}

/* As the kernel side does: each process has one thread, and calls for the first time when it is told to. */
static void tell_claims(void)
{
    const pid_t pids[] = {world.pid, shared->child};

    for (uint32_t area = AREAS_THAT_WAIT; area < AREAS_THAT_WAIT + 2; area++)
        for (uint32_t ticket = 1; ticket <= 2; ticket++)
            for (size_t i = 0; i < ARRAY_SIZE(pids) && pids[i]; i++)
                cr_assert_eq(
                    inline_claim(inline_of(world.backend), pids[i], 100 * area + ticket, ticket, area), 0);
}

/* Both run right, whatever they have, and so many calls of theirs are seen. */
static void expect_calls(unsigned number, size_t calls)
{
    long before = atomic_load(&shared->sum[number]);

    world.calls = 0;
    have_done(number, CALL);
    tell_claims();
    cr_expect_eq(atomic_load(&shared->sum[number]) - before, CALLS * 1001);
    cr_assert_eq(world.backend->of->sample(world.backend), 0);
    cr_assert_eq(world.backend->of->read(world.backend), 0);
    cr_expect_eq(world.calls, calls, "%zu instead of %zu", world.calls, calls);
}

static void end(void)
{
    struct error err = {0};

    cr_assert_eq(world.backend->of->detach(world.backend, &err), 0, "%s", err.message);
    expect_patched(world.pid, false, false);
    if (shared->child)
        expect_patched(shared->child, false, false);
    if (world.other) {
        expect_patched(world.other, false, false);
        kill(world.other, SIGKILL);
        waitpid(world.other, NULL, 0);
    }
    kill(world.pid, SIGKILL);
    waitpid(world.pid, NULL, 0);
    world.backend->of->free(world.backend);
    inline_image_free(world.inlined);
    plan_free(world.plan);
    image_functions_free(world.functions, world.count);
    elf_image_free(world.image);
    free(world.out);
}

/* ------------------------------------------------------------------------------------ the tests */

Test(inline_change, functions_go_and_come_while_it_runs)
{
    begin();
    expect_patched(world.pid, true, true);
    expect_calls(0, 2 * CALLS);
    take_out(true, false);
    expect_patched(world.pid, false, true);
    expect_calls(0, CALLS);
    take_out(false, true);
    expect_patched(world.pid, true, false);
    expect_calls(0, CALLS);
    take_out(false, false);
    expect_calls(0, 2 * CALLS);
    end();
}

Test(inline_change, functions_begin_outside)
{
    begin_with(true, false);
    expect_patched(world.pid, false, true);
    expect_calls(0, CALLS);
    take_out(false, true);
    expect_patched(world.pid, true, false);
    expect_calls(0, CALLS);
    end();
}

Test(inline_change, pages_without_patches_are_the_files)
{
    begin();
    expect_calls(0, 2 * CALLS);
    cr_expect(is_copied(world.pid, world.one));
    take_out(true, true);
    expect_calls(0, 0);
    cr_expect(!is_copied(world.pid, world.one));
    cr_expect(!is_copied(world.pid, world.two));
    take_out(false, false);
    expect_calls(0, 2 * CALLS);
    end();
}

Test(inline_change, a_child_loses_what_its_parent_has_lost_since)
{
    uint64_t forked;

    begin();
    forked = fork_target();
    take_out(true, false);
    expect_patched(world.pid, false, true);
    expect_patched(shared->child, true, true);
    cr_assert_eq(tell_fork(forked), 0);
    expect_patched(shared->child, false, true);
    expect_calls(1, CALLS);
    end();
}

Test(inline_change, a_child_gets_what_its_parent_has_got_since)
{
    uint64_t forked;

    begin();
    take_out(true, true);
    forked = fork_target();
    take_out(false, true);
    expect_patched(shared->child, false, false);
    cr_assert_eq(tell_fork(forked), 0);
    expect_patched(shared->child, true, false);
    expect_calls(1, CALLS);
    take_out(false, false);
    expect_patched(shared->child, true, true);
    expect_calls(1, 2 * CALLS);
    end();
}

Test(inline_change, one_process_goes_ahead)
{
    bool *none;

    start_other();
    begin();
    none = calloc(world.count + 1, sizeof(*none));
    patch(world.other);
    take_out(true, false);
    choose(world.out, world.other, none);
    expect_patched(world.pid, false, true);
    expect_patched(world.other, true, true);
    choose(none, world.other, world.out);
    expect_patched(world.pid, true, true);
    expect_patched(world.other, false, true);
    choose(none, 0, NULL);
    expect_patched(world.other, true, true);
    end();
    free(none);
}

Test(inline_change, the_busiest_of_several)
{
    start_other();
    begin();
    cr_expect_eq(world.backend->of->busiest(world.backend, world.inlined), 0);
    patch(world.other);
    cr_expect_neq(world.backend->of->busiest(world.backend, world.inlined), 0);
    have_done(0, CALL);
    cr_expect_eq(world.backend->of->busiest(world.backend, world.inlined), world.pid);
    end();
}

Test(inline_change, what_children_run_is_known)
{
    uint64_t forked;

    begin();
    forked = fork_target();
    cr_assert_eq(tell_fork(forked), 0);
    world.backend->of->ran(world.backend);
    have_done(0, BURN);
    cr_expect_geq(world.backend->of->ran(world.backend), BURN_NS);
    have_done(1, BURN);
    cr_expect_geq(world.backend->of->ran(world.backend), BURN_NS);
    end();
}

/* What is copied is what would have been made for the process itself. */
Test(inline_change, stubs_are_made_once_for_one_place)
{
    struct inline_order order = {.first_number = 1}, elsewhere;
    static struct inline_patch patches[2]; /* padding and all: zero */
    struct inline_code *code;
    struct inline_extent room;
    uint8_t *copied;

    plan();
    order.functions = world.functions;
    order.load_bias = 0x555555554000;
    order.head = order.load_bias + 0x4000000;
    cr_assert_eq(inline_code_new(world.inlined, &order, &code), 0);
    elsewhere = order;
    elsewhere.head += 4096;
    cr_expect(inline_code_is(code, world.inlined, &order));
    cr_expect_not(inline_code_is(code, world.inlined, &elsewhere));
    order.stubs = calloc(world.inlined->stub_bytes, 1);
    copied = calloc(world.inlined->stub_bytes, 1);
    cr_assert_eq(inline_image_emit(world.inlined, &order, patches, &room), 0);
    cr_expect_eq(pread(code->stubs, copied, world.inlined->stub_bytes, AGENT_STUBS_OFFSET),
                 (ssize_t)world.inlined->stub_bytes);
    cr_expect_arr_eq(copied, order.stubs, world.inlined->stub_bytes);
    cr_expect_arr_eq(code->patches, patches, sizeof(patches));
    inline_code_release(inline_code_share(code));
    cr_expect_eq(code->users, 1);
    inline_code_release(code);
    free(order.stubs);
    free(copied);
    inline_image_free(world.inlined);
    plan_free(world.plan);
    image_functions_free(world.functions, world.count);
    elf_image_free(world.image);
    free(world.out);
}
