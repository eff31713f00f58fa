/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Carries out what the policy has decided: tells the attachment which functions go and come, and the store
 * since when they are not recorded. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "collector/budget/budget_state.h"

#define DRAIN_ROUNDS 16

int budget_before_close(void *context, const struct probe_group *group, struct error *err)
{
    struct budget *budget = context;
    int r = 0;

    for (unsigned round = 0; round < DRAIN_ROUNDS; round++)
        if ((r = budget->options.consume(budget->options.context, err)) <= 0)
            break;
    if (r < 0)
        return r;
    memset(budget->marked, 0, budget->accounts.function_count);
    for (size_t i = 0; i < group->count; i++)
        budget->marked[attachment_function(group->image, group->sites[i])] = true;
    return streams_returns_unseen(budget->options.streams, budget->marked, budget->accounts.function_count,
                                  err);
}

static enum probe_move move_of(const struct budget *budget, uint32_t function)
{
    const struct probe_unit *unit = budget_unit(budget, function);
    bool away = budget->away[budget->accounts.functions[function].unit];

    if (unit->excluded)
        return away ? PROBE_IS_AWAY : PROBE_GOES;
    return away && !budget_is_ahead(budget, function) ? PROBE_COMES : away ? PROBE_IS_AWAY : PROBE_STAYS;
}

/* The gaps of functions that go begin before their probes are removed. */
static int begin_gaps(struct budget *budget, const enum probe_move *moves, size_t count, struct error *err)
{
    uint64_t now = clock_ns(CLOCK_REALTIME);
    int r = 0;

    for (uint32_t i = 0; !r && i < count; i++) {
        if (!budget->accounts.functions[i].probed || moves[i] != PROBE_GOES)
            continue;
        if (streams_function_missed(budget->options.streams, i))
            return error_no_memory(err);
        r = budget_gap_end(budget, i, now, err);
        if (!r)
            r = budget_gap_begin(budget, i, FUNCTION_EXCLUDED, now, err);
    }
    return r;
}

/* The gaps of functions that come end when their probes are there: as far as that could be done, see
 * inline_moves.c. */
static int end_gaps(struct budget *budget, struct error *err)
{
    uint64_t now = clock_ns(CLOCK_REALTIME);
    int r = 0;

    for (uint32_t i = 0; !r && i < budget->accounts.function_count; i++)
        if (budget->accounts.functions[i].probed && move_of(budget, i) == PROBE_COMES)
            r = budget_gap_end(budget, i, now, err);
    return r;
}

static int move_uprobes(struct budget *budget, const enum probe_move *moves, const double *rates,
                        size_t count, struct error *err)
{
    AUTO_FREE const struct traced_image **images = calloc(budget->image_count + 1, sizeof(*images));
    AUTO_FREE size_t *wholes = calloc(budget->image_count + 1, sizeof(*wholes));
    size_t image_count = 0;

    if (!images || !wholes)
        return error_no_memory(err);
    for (size_t i = 0; i < budget->image_count; i++) {
        if (budget->images[i].apart)
            continue;
        images[image_count] = budget->images[i].image;
        wholes[image_count++] = budget->images[i].group_size;
    }
    return attachment_move(&budget->attachment,
                           &(struct probe_moves){.moves = moves,
                                                 .rates = rates,
                                                 .count = count,
                                                 .images = images,
                                                 .wholes = wholes,
                                                 .image_count = image_count},
                           err);
}

int budget_relink(struct budget *budget, struct error *err)
{
    size_t count = budget->accounts.function_count;
    AUTO_FREE enum probe_move *moves = calloc(count + 1, sizeof(*moves));
    AUTO_FREE double *rates = calloc(count + 1, sizeof(*rates));
    int r;

    if (!moves || !rates)
        return error_no_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        moves[i] = move_of(budget, i);
        rates[i] = budget_unit(budget, i)->recent_ns;
    }
    r = begin_gaps(budget, moves, count, err);
    if (!r)
        r = move_uprobes(budget, moves, rates, count, err);
    if (!r)
        r = budget_move_inline(budget, err);
    if (!r)
        r = end_gaps(budget, err);
    for (size_t i = 0; !r && i < budget->accounts.function_count; i++)
        budget->away[i] = budget->accounts.units[i].excluded || budget_is_ahead(budget, (uint32_t)i);
    return r;
}

void budget_leave(struct budget *budget, const struct traced_image *image)
{
    attachment_close_image(&budget->attachment, image);
}
