/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/go/go_meanwhile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

enum { HELD_MAX = 16 };

/* An operation in the source, and the place before it. */
struct site {
    uint32_t site;
    uint32_t probe;      /* of the place; 0: there is none */
    uint32_t times;      /* a hit of the place counts so much */
    uint32_t hold, hits; /* during that hold */
    UT_hash_handle hh;
};

struct held {
    uint64_t goroutine;
    struct go_choice choice;
};

struct go_meanwhile {
    struct go_meanwhile_options options;
    struct site *sites;
    struct held held[HELD_MAX];
    size_t held_count;
    uint32_t holds; /* so far */
};

int go_meanwhile_new(const struct go_meanwhile_options *options, struct go_meanwhile **ret_meanwhile)
{
    struct go_meanwhile *meanwhile = calloc(1, sizeof(*meanwhile));

    if (!meanwhile)
        return -ENOMEM;
    meanwhile->options = *options;
    *ret_meanwhile = meanwhile;
    return 0;
}

void go_meanwhile_free(struct go_meanwhile *meanwhile)
{
    struct site *site = NULL, *next = NULL;

    if (!meanwhile)
        return;
    HASH_ITER (hh, meanwhile->sites, site, next) {
        HASH_DEL(meanwhile->sites, site);
        free(site);
    }
    free(meanwhile);
}

/* The place before the operation. */
static void find_probe(const struct go_meanwhile *meanwhile, enum go_op operation, struct site *site)
{
    const struct go_meanwhile_options *options = &meanwhile->options;
    const struct go_targets *targets = go_program_targets(options->file);
    const struct go_place_source places = go_program_places(options->file);
    struct go_place place;

    if (places.find(places.context, site->site, &place))
        return;
    for (size_t i = 0; i < targets->count; i++) {
        const struct go_target *target = &targets->items[i];
        uint32_t probe = go_program_first_probe(options->file) + (uint32_t)i;

        if (target->probe.kind != GO_AT_DELAY || target->operation != operation || !target->usage ||
            (int)target->usage->line != place.line || strcmp(target->usage->file, place.file) != 0 ||
            !options->was_hit(options->context, probe))
            continue;
        site->probe = probe;
        site->times = target->probe.behind ? 2 : 1;
        return;
    }
}

static struct site *get_site(struct go_meanwhile *meanwhile, const struct process_event *event)
{
    struct site *site;

    HASH_FIND(hh, meanwhile->sites, &event->site, sizeof(event->site), site);
    if (site)
        return site;
    site = calloc(1, sizeof(*site));
    if (!site)
        return NULL;
    site->site = event->site;
    find_probe(meanwhile, (enum go_op)event->operation, site);
    HASH_ADD(hh, meanwhile->sites, site, sizeof(site->site), site);
    if (!site->hh.tbl) { /* no memory */
        free(site);
        return NULL;
    }
    return site;
}

/* A goroutine that does something is not held any more. */
static void end_hold(struct go_meanwhile *meanwhile, uint64_t goroutine)
{
    for (size_t i = 0; i < meanwhile->held_count; i++)
        if (meanwhile->held[i].goroutine == goroutine)
            meanwhile->held[i--] = meanwhile->held[--meanwhile->held_count];
}

static int on_operation(struct go_meanwhile *meanwhile, const struct process_event *event,
                        struct go_strategy *strategy)
{
    struct site *site = get_site(meanwhile, event);
    struct go_choice choice;
    int r = 0;

    if (!site)
        return -ENOMEM;
    if (meanwhile->held_count != 1)
        return 0;
    if (site->hold != meanwhile->holds)
        site->hits = 0;
    site->hold = meanwhile->holds;
    choice = (struct go_choice){site->probe, site->hits};
    site->hits += site->times;
    for (uint32_t i = 0; !r && i < site->times; i++, choice.hit++)
        r = go_strategy_follows(strategy, &meanwhile->held[0].choice, &choice);
    return r;
}

int go_meanwhile_event(struct go_meanwhile *meanwhile, const struct process_event *event,
                       struct go_strategy *strategy)
{
    if (!event->goroutine || event->kind == GO_EVENT_EXIT)
        return 0;
    end_hold(meanwhile, event->goroutine);
    if (event->kind == GO_EVENT_DELAY && meanwhile->held_count < HELD_MAX) {
        meanwhile->holds++;
        meanwhile->held[meanwhile->held_count++] =
            (struct held){event->goroutine, {(uint32_t)event->other, (uint32_t)event->value}};
    }
    return event->kind == GO_EVENT_OPERATE && event->site ? on_operation(meanwhile, event, strategy) : 0;
}
