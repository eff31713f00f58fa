/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where probes go in real Go programs, of three versions and in all ways of building them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "collector/go/targets.h"
#include "image/elf/elf_image.h"
#include "image/go/go_code.h"
#include "image/go/go_layout.h"
#include "image/go/go_usage.h"

static struct {
    char folder[64], path[128];
    struct elf_image *image;
    struct go_layout layout;
    struct go_model model;
    struct go_targets targets;
} built;

static void run(const char *command)
{
    cr_assert_eq(system(command), 0, "%s", command); // NOLINT(bugprone-command-processor,cert-env33-c)
}

static void find(enum go_detail detail)
{
    struct error err = {0};

    go_targets_release(&built.targets);
    cr_assert_eq(go_targets_find(built.image, &built.layout, &built.model, detail, &built.targets, &err), 0,
                 "%s", err.message);
}

static void build(const char *version, const char *options)
{
    struct error err = {0};
    char command[512];

    snprintf(built.folder, sizeof(built.folder), "/tmp/targets.XXXXXX");
    cr_assert(mkdtemp(built.folder));
    snprintf(built.path, sizeof(built.path), "%s/counted", built.folder);
    snprintf(command, sizeof(command),
             "cd tests/programs/go/counted && GOTOOLCHAIN=local GOENV=off GOPROXY=off GOFLAGS=-mod=mod "
             "GO111MODULE=on /usr/lib/go-%s/bin/go build %s -o %s .",
             version, options, built.path);
    run(command);
    cr_assert_eq(elf_image_open(built.path, &built.image, &err), 0, "%s", err.message);
    cr_assert_eq(go_layout_read(built.image, &built.layout, &err), 0, "%s", err.message);
    cr_assert_eq(go_model_read(built.image, &built.model, &err), 0, "%s", err.message);
    find(GO_DETAIL_OPERATIONS);
}

static void release(void)
{
    go_targets_release(&built.targets);
    go_model_release(&built.model);
    go_layout_release(&built.layout);
    elf_image_free(built.image);
    unlink(built.path);
    rmdir(built.folder);
}

/* The target of this kind in the function; NULL: there is none. */
static const struct go_target *target_in(enum go_entry entry, enum go_place_kind kind)
{
    const struct go_entry_place *place = &built.layout.entries[entry];

    for (size_t i = 0; place->name && i < built.targets.count; i++) {
        const struct go_target *target = &built.targets.items[i];

        if (target->probe.kind == kind && target->address >= place->address &&
            target->address < place->address + place->size)
            return target;
    }
    return NULL;
}

/* What cannot be told at all without, in every version. */
static const struct {
    enum go_entry entry;
    enum go_place_kind kind;
    enum go_op operation;
} required[] = {
    {GO_NEWPROC, GO_AT_SPAWN, GO_OP_GO},
    {GO_NEWPROC_CLOSURE, GO_AT_SPAWNED, GO_OP_NONE},
    {GO_EXECUTE, GO_AT_EXECUTE, GO_OP_NONE},
    {GO_GOEXIT0, GO_AT_END, GO_OP_NONE},
    {GO_GOPARK, GO_AT_PARK, GO_OP_NONE},
    {GO_READY, GO_AT_READY, GO_OP_NONE},
    {GO_GOSCHED_IMPL, GO_AT_QUEUE, GO_OP_NONE},
    {GO_EXIT, GO_AT_EXIT, GO_OP_NONE},
    {GO_GOPANIC, GO_AT_PANIC, GO_OP_NONE},
    {GO_FATALPANIC, GO_AT_FATAL_PANIC, GO_OP_NONE},
    {GO_THROW, GO_AT_FATAL, GO_OP_NONE},
    {GO_TIME_SLEEP, GO_AT_OPERATION, GO_OP_SLEEP},
    {GO_CHANSEND, GO_AT_SEND, GO_OP_CHAN_SEND},
    {GO_CHANRECV, GO_AT_RECV, GO_OP_CHAN_RECV},
    {GO_CLOSECHAN, GO_AT_OPERATION, GO_OP_CHAN_CLOSE},
    {GO_SELECTGO, GO_AT_SELECT, GO_OP_SELECT},
    {GO_BLOCK, GO_AT_OPERATION, GO_OP_BLOCK},
    {GO_MUTEX_LOCK_SLOW, GO_AT_OPERATION, GO_OP_MUTEX_LOCK},
    {GO_MUTEX_LOCK, GO_AT_OPERATION, GO_OP_MUTEX_LOCK}, /* through sync.Locker */
    {GO_MUTEX_UNLOCK, GO_AT_OPERATION, GO_OP_MUTEX_UNLOCK},
    {GO_RWMUTEX_LOCK, GO_AT_OPERATION, GO_OP_RWMUTEX_LOCK},
    {GO_RWMUTEX_TRYLOCK, GO_AT_OPERATION, GO_OP_RWMUTEX_TRYLOCK},
    {GO_RWMUTEX_UNLOCK, GO_AT_OPERATION, GO_OP_RWMUTEX_UNLOCK},
    {GO_WAITGROUP_ADD, GO_AT_OPERATION, GO_OP_WAITGROUP_ADD},
    {GO_WAITGROUP_WAIT, GO_AT_OPERATION, GO_OP_WAITGROUP_WAIT},
    {GO_COND_WAIT, GO_AT_OPERATION, GO_OP_COND_WAIT},
    {GO_COND_SIGNAL, GO_AT_OPERATION, GO_OP_COND_SIGNAL},
    {GO_COND_BROADCAST, GO_AT_OPERATION, GO_OP_COND_BROADCAST},
    {GO_ONCE_DO_SLOW, GO_AT_OPERATION, GO_OP_ONCE_DO},
};

static void check_required(void)
{
    for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++) {
        const struct go_target *target = target_in(required[i].entry, required[i].kind);

        cr_expect_not_null(target, "%s", go_entry_name(required[i].entry));
        if (target)
            cr_expect_eq(target->operation, required[i].operation, "%s", go_entry_name(required[i].entry));
    }
}

/* Each place once, in order, at an instruction of the file that the kernel takes a probe on; few of them
 * dear. */
static void check_places(const char *what)
{
    int file = open(built.path, O_RDONLY | O_CLOEXEC);
    struct go_code code = {0};
    size_t stepped = 0;

    cr_assert_geq(file, 0);
    for (size_t i = 0; i < built.targets.count; i++) {
        const struct go_target *target = &built.targets.items[i];
        uint8_t byte = 0;
        uint64_t offset;

        cr_expect(!i || built.targets.items[i - 1].address < target->address);
        cr_assert_eq(elf_image_file_offset(built.image, target->address, &offset), 0);
        cr_assert_eq(pread(file, &byte, 1, (off_t)offset), 1);
        cr_assert_eq(go_code_read(built.image, target->address, 16, &code), 0);
        cr_assert(code.count, "no instruction at %#llx", (unsigned long long)target->address);
        cr_expect_eq(byte, code.items[0].code[0]);
        cr_expect_neq(byte, 0xf0, "a LOCK prefix at %#llx", (unsigned long long)target->address);
        cr_expect_neq(byte, 0xcc);
        if (target->single_stepped)
            cr_log_info("%s: kind %u at %#llx is single-stepped", what, target->probe.kind,
                        (unsigned long long)target->address);
        stepped += target->single_stepped;
    }
    cr_expect_leq(stepped, 5, "%zu of %zu are single-stepped", stepped, built.targets.count);
    go_code_release(&code);
    close(file);
}

static size_t count_kind(enum go_place_kind kind, enum go_op operation)
{
    size_t count = 0;

    for (size_t i = 0; i < built.targets.count; i++)
        count += built.targets.items[i].probe.kind == kind && built.targets.items[i].operation == operation;
    return count;
}

/* Where goroutines can be held up: both sides of go statements, where goroutines begin, and before what
 * changes memory atomically. */
static void check_delays(const char *what)
{
    const struct go_target *target;
    size_t first = built.targets.count, behind = 0, beginnings = 0, atomics = 0;
    struct error err = {0};

    cr_assert_eq(go_targets_add_delays(built.image, &built.layout, &built.model, &built.targets, &err), 0);
    for (size_t i = first; i < built.targets.count; i++) {
        target = &built.targets.items[i];
        if (target->probe.kind == GO_AT_BEHIND_GO)
            continue;
        cr_assert_eq(target->probe.kind, GO_AT_DELAY);
        cr_expect_eq(target->probe.behind, target->operation == GO_OP_GO);
        behind += target->probe.behind;
        beginnings += !target->operation && target->usage;
        atomics += !target->operation && !target->usage;
    }
    cr_expect_not_null(target_in(GO_NEWPROC, GO_AT_BEHIND_GO), "%s", what);
    cr_expect_gt(behind, 0, "%s", what);
    cr_expect_gt(beginnings, 0, "%s", what);
    cr_expect_leq(atomics, built.model.atomic_count, "%s", what);
    cr_expect_geq(2 * atomics, built.model.atomic_count, "%zu of %zu: %s", atomics, built.model.atomic_count,
                  what);
}

static void check_build(const char *version, const char *options, bool inlines)
{
    build(version, options);
    check_required();
    check_places(version);
    cr_expect_eq(count_kind(GO_AT_LOCK, GO_OP_MUTEX_LOCK) > 0, inlines, "go %s %s", version, options);
    cr_expect_eq(count_kind(GO_AT_LOCK, GO_OP_RWMUTEX_RLOCK) > 0, inlines, "go %s %s", version, options);
    cr_expect_eq(count_kind(GO_AT_LOCK, GO_OP_MUTEX_TRYLOCK) + count_kind(GO_AT_RESULT, GO_OP_MUTEX_TRYLOCK),
                 1);
    cr_expect_eq(count_kind(GO_AT_RESULT, GO_OP_RWMUTEX_TRYLOCK), 1);
    check_delays(version);
    cr_expect_eq(built.model.atomic_count > 0, inlines, "go %s %s", version, options);
    release();
}

Test(go_targets, stripped_programs)
{
    check_build("1.19", "-ldflags='-s -w'", true);
    check_build("1.22", "-ldflags='-s -w'", true);
    check_build("1.23", "-ldflags='-s -w'", true);
}

Test(go_targets, position_independent_programs)
{
    check_build("1.22", "-buildmode=pie -ldflags='-s -w'", true);
}

Test(go_targets, programs_with_the_race_detector_inline_no_locks)
{
    check_build("1.22", "-race", false);
}

Test(go_targets, less_detail_has_fewer_places)
{
    size_t all;

    build("1.23", "");
    all = built.targets.count;
    find(GO_DETAIL_WAITING);
    cr_expect_lt(built.targets.count, all);
    cr_expect_not_null(target_in(GO_CHANSEND, GO_AT_SEND));
    cr_expect_eq(count_kind(GO_AT_LOCK, GO_OP_MUTEX_LOCK), 0);
    find(GO_DETAIL_SCHEDULE);
    cr_expect_null(target_in(GO_CHANSEND, GO_AT_SEND));
    cr_expect_not_null(target_in(GO_GOPARK, GO_AT_PARK));
    release();
}

Test(go_targets, a_refusal_names_what_is_missing)
{
    struct error err = {0};
    struct go_targets targets;

    build("1.22", "-ldflags='-s -w'");
    built.layout.entries[GO_GOPARK].size = 0; /* a function without code */
    cr_expect_eq(
        go_targets_find(built.image, &built.layout, &built.model, GO_DETAIL_SCHEDULE, &targets, &err),
        -ENOTSUP);
    cr_expect_not_null(strstr(err.message, "runtime.gopark"), "%s", err.message);
    cr_expect_not_null(strstr(err.message, "go1.22"), "%s", err.message);
    go_targets_release(&targets);
    built.layout.entries[GO_NEWPROC_CLOSURE].name = NULL;
    cr_expect_eq(
        go_targets_find(built.image, &built.layout, &built.model, GO_DETAIL_SCHEDULE, &targets, &err),
        -ENOTSUP);
    cr_expect_not_null(strstr(err.message, "runtime.newproc"), "%s", err.message);
    go_targets_release(&targets);
    release();
}
