/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/go/coverage_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define BIT(kind) (1u << GO_REQUIRE_##kind)

unsigned coverage_wanted(enum go_op operation, bool blocks)
{
    switch (operation) {
    case GO_OP_CHAN_SEND:
    case GO_OP_CHAN_RECV:
    case GO_OP_CHAN_RANGE:
        return BIT(BLOCKED) | BIT(UNBLOCKING) | BIT(NOP);
    case GO_OP_SELECT:
        return BIT(BLOCKED) | BIT(UNBLOCKING) | (blocks ? BIT(NOP) : 0);
    case GO_OP_MUTEX_LOCK:
    case GO_OP_RWMUTEX_LOCK:
    case GO_OP_RWMUTEX_RLOCK:
        return BIT(BLOCKED) | BIT(BLOCKING);
    case GO_OP_MUTEX_TRYLOCK:
    case GO_OP_RWMUTEX_TRYLOCK:
    case GO_OP_RWMUTEX_TRYRLOCK:
        return BIT(BLOCKING);
    case GO_OP_CHAN_CLOSE:
    case GO_OP_MUTEX_UNLOCK:
    case GO_OP_RWMUTEX_UNLOCK:
    case GO_OP_RWMUTEX_RUNLOCK:
    case GO_OP_WAITGROUP_DONE:
    case GO_OP_COND_SIGNAL:
    case GO_OP_COND_BROADCAST:
        return BIT(UNBLOCKING) | BIT(NOP);
    case GO_OP_GO:
        return BIT(NOP);
    default:
        return 0;
    }
}

const char *go_requirement_name(enum go_op operation, enum go_requirement_kind kind)
{
    static const char *const names[GO_REQUIREMENT_KINDS] = {"blocked", "unblocking", "blocking", "no_op"};

    return operation == GO_OP_GO ? "covered" : names[kind];
}

struct usage *usage_find(const struct go_coverage *coverage, const char *file, int line, enum go_op operation)
{
    struct usage_key key;
    struct usage *usage;

    memset(&key, 0, sizeof(key));
    key.file = file;
    key.line = line;
    key.operation = operation;
    HASH_FIND(hh, coverage->usages, &key, sizeof(key), usage);
    return usage;
}

static void usage_free(struct usage *usage)
{
    for (size_t i = 0; i < usage->public.part_count; i++)
        for (size_t kind = 0; kind < GO_REQUIREMENT_KINDS; kind++)
            free(usage->public.parts[i].requirements[kind].covers);
    free(usage->public.parts);
    free(usage->public.nodes);
    free(usage);
}

static void forget_order(struct go_coverage *coverage)
{
    free(coverage->sorted);
    coverage->sorted = NULL;
}

int usage_add(struct go_coverage *coverage, const char *file, int line, enum go_op operation, bool blocks,
              struct usage **ret_usage)
{
    struct usage *usage = calloc(1, sizeof(*usage)), *added;

    if (!usage)
        return -ENOMEM;
    usage->key = (struct usage_key){file, line, operation};
    usage->public =
        (struct go_covered_usage){.file = file, .line = line, .operation = operation, .blocks = blocks};
    HASH_ADD(hh, coverage->usages, key, sizeof(usage->key), usage);
    added = usage_find(coverage, file, line, operation);
    if (!added) {
        usage_free(usage);
        return -ENOMEM;
    }
    coverage->usage_count++;
    forget_order(coverage);
    *ret_usage = usage;
    return usage_set_parts(coverage, usage, operation != GO_OP_SELECT);
}

int usage_set_parts(struct go_coverage *coverage, struct usage *usage, size_t count)
{
    struct go_covered_usage *public = &usage->public;
    unsigned wanted = coverage_wanted(public->operation, public->blocks);

    if (array_reserve(&public->parts, &usage->part_capacity, count))
        return -ENOMEM;
    while (public->part_count < count) {
        struct go_usage_part *part = &public->parts[public->part_count++];

        *part = (struct go_usage_part){0};
        for (unsigned kind = 0; kind < GO_REQUIREMENT_KINDS; kind++)
            part->requirements[kind].wanted = wanted >> kind & 1;
    }
    return 0;
}

/* A select of a model: what the lines and directions of its cases are. */
static int add_cases(struct go_coverage *coverage, struct usage *usage, const struct go_usage_row *row)
{
    size_t known = usage->public.part_count;
    int r = usage_set_parts(coverage, usage, row->case_count);

    for (size_t i = known; !r && i < row->case_count; i++) {
        usage->public.parts[i].line = row->case_lines[i];
        usage->public.parts[i].send = row->case_sends[i];
    }
    return r;
}

static int add_row(struct go_coverage *coverage, const struct go_usage_row *row)
{
    struct coverage_text *file;
    struct usage *usage;
    int r = 0;

    if ((row->standard && !coverage->standard) || !coverage_wanted(row->operation, row->blocks))
        return 0;
    file = coverage_intern(coverage, row->file);
    if (!file)
        return -ENOMEM;
    file->own_file = true;
    usage = usage_find(coverage, file->text, row->line, row->operation);
    if (!usage)
        r = usage_add(coverage, file->text, row->line, row->operation, row->blocks, &usage);
    if (r < 0)
        return r;
    usage->public.in_model = true;
    return row->operation == GO_OP_SELECT ? add_cases(coverage, usage, row) : 0;
}

int go_coverage_add_model(struct go_coverage *coverage, const struct go_usage_row *rows, size_t count)
{
    int r = 0;

    for (size_t i = 0; !r && i < count; i++)
        r = add_row(coverage, &rows[i]);
    return r;
}

void usages_free(struct go_coverage *coverage)
{
    struct usage *usage, *next;

    HASH_ITER (hh, coverage->usages, usage, next) {
        HASH_DEL(coverage->usages, usage);
        usage_free(usage);
    }
    forget_order(coverage);
}
