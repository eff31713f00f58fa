/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/self_test.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "bpf/wire.h"
#include "collector/backend/uprobe.h"

#define HITS 4000

/* Two functions whose first instructions stand for the two classes of sites. */
void self_test_push(void);
void self_test_mov(void);
__asm__(
    ".pushsection .text\n"
    ".globl self_test_push\n.type self_test_push, @function\n"
    "self_test_push:\n\tpush %rbp\n\tpop %rbp\n\tret\n"
    ".size self_test_push, . - self_test_push\n"
    ".globl self_test_mov\n.type self_test_mov, @function\n"
    "self_test_mov:\n\tmov %rsp, %rax\n\tret\n"
    ".size self_test_mov, . - self_test_mov\n"
    ".popsection\n");

const char *self_test_cost_name(enum self_test_cost cost)
{
    static const char *const names[] = {
        [COST_CALL_EMULATED] = "call_emulated",
        [COST_CALL_SINGLE_STEPPED] = "call_single_stepped",
        [COST_RETURN] = "return",
    };

    return names[cost];
}

/* Where in our own executable `function` lies. */
static int file_offset_of(void (*function)(void), unsigned long *ret_offset)
{
    AUTO_FCLOSE FILE *maps = fopen("/proc/self/maps", "re");
    uint64_t address = (uintptr_t)function, start, end, offset;
    char line[512];

    while (maps && fgets(line, sizeof(line), maps)) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &offset) != 3)
            continue;
        if (address >= start && address < end) {
            *ret_offset = (unsigned long)(address - start + offset);
            return 0;
        }
    }
    return -ENOENT;
}

static int count_record(void *context, const void *record, size_t size)
{
    const struct wire_header *header = record;
    unsigned *hits = context;

    (void)size;
    if (header->kind == WIRE_CALL || header->kind == WIRE_CALL_FROM || header->kind == WIRE_RETURN)
        ++*hits;
    return 0;
}

/* CPU nanoseconds of HITS calls of `function`. */
static double time_calls(void (*function)(void))
{
    uint64_t begun = clock_ns(CLOCK_THREAD_CPUTIME_ID);

    for (int i = 0; i < HITS; i++)
        function();
    return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun);
}

/* Probes `function`, calls it, checks that every hit arrived, and stores what one cost. */
static int measure(struct self_test *result, void (*function)(void), uint64_t cookie, double *ret_ns)
{
    const struct uprobe_options options = {.with_time = true};
    unsigned hits = 0, expected = cookie & COOKIE_ENTRY_ONLY ? HITS : 2 * HITS;
    struct uprobe_backend *backend;
    double unprobed, probed;
    unsigned long offset;
    int r;

    r = uprobe_backend_open(&options, &backend, &result->why);
    if (r)
        return r;
    result->loads = true;
    result->sessions = uprobe_backend_has_sessions(backend);
    r = file_offset_of(function, &offset);
    if (!r)
        r = uprobe_backend_add_process(backend, getpid(), &result->why);
    unprobed = time_calls(function);
    if (!r)
        r = uprobe_backend_attach(backend, "/proc/self/exe", &offset, &cookie, 1, &result->why);
    if (!r) {
        probed = time_calls(function);
        while (uprobe_backend_consume(backend, HITS, count_record, &hits) > 0)
            ;
        if (hits == expected)
            *ret_ns = (probed - unprobed) / HITS;
        else
            r = error_say(&result->why, -EIO, "a probe on tracectl itself delivered %u of %u records", hits,
                          expected);
    }
    uprobe_backend_free(backend);
    return r;
}

void self_test_run(struct self_test *ret_result)
{
    double with_return = 0;

    *ret_result = (struct self_test){0};
    if (measure(ret_result, self_test_push, COOKIE_ENTRY_ONLY, &ret_result->cost_ns[COST_CALL_EMULATED]) ||
        measure(ret_result, self_test_mov, COOKIE_ENTRY_ONLY,
                &ret_result->cost_ns[COST_CALL_SINGLE_STEPPED]) ||
        measure(ret_result, self_test_push, 0, &with_return))
        return;
    ret_result->cost_ns[COST_RETURN] = with_return - ret_result->cost_ns[COST_CALL_EMULATED];
    ret_result->probes = true;
}
