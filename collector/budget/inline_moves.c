/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Moves inline probes while a recording runs.
 *
 * Inline probes write all that they see, and a program of many processes is patched one by one: a function
 * that is hot is noticed late, and paid by all. So where there are several patched processes, a function that
 * is tried again is so in the busiest one only. Its cost there counts for all of them, by the time that they
 * use, and when it has passed the others get it. Up to then it counts as not recorded.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "collector/budget/budget_state.h"
#include "collector/process/process.h"

#define SCALE_MOST 1000.0

/* ------------------------------------------------------------------------------------ trials */

/* Functions that are about to be let in are tried in one process, if there are others. */
static void begin_trials(struct budget *budget, struct budget_image *place)
{
    const struct traced_image *image = place->image;
    bool any = false;

    for (uint32_t i = 0; i < image->function_count; i++) {
        uint32_t number = image->first_function + i;
        struct budget_function *function = &budget->accounts.functions[number];
        struct probe_unit *unit = budget_unit(budget, number);

        unit->scale = 1;
        function->ahead = function->inlined && !unit->excluded && unit->trial && budget->away[function->unit];
        any |= function->ahead;
    }
    if (any && place->ahead && backend_has(budget->options.inlined, place->ahead))
        return;
    place->ahead = any ? budget->options.inlined->of->busiest(budget->options.inlined, image->inlined) : 0;
    place->ahead_cpu_ns = place->ahead ? process_cpu_ns(place->ahead) : 0;
    for (uint32_t i = 0; any && !place->ahead && i < image->function_count; i++)
        budget->accounts.functions[image->first_function + i].ahead = false;
}

static bool image_moves(const struct budget *budget, const struct budget_image *place)
{
    const struct traced_image *image = place->image;
    bool gone = !backend_has(budget->options.inlined, place->ahead);

    for (uint32_t i = 0; i < image->function_count; i++) {
        uint32_t number = image->first_function + i;

        if (budget->accounts.functions[number].ahead && (gone || !budget_unit(budget, number)->trial))
            return true;
    }
    return false;
}

bool budget_trials_move(const struct budget *budget)
{
    for (size_t i = 0; budget->options.inlined && i < budget->image_count; i++)
        if (budget->images[i].ahead && image_moves(budget, &budget->images[i]))
            return true;
    return false;
}

/* Of what the processes have used since the last sample: all of it to what `place->ahead` has. */
static double scale_of(const struct budget_image *place, uint64_t its_ns, double all)
{
    double its = its_ns > place->ahead_cpu_ns ? (double)(its_ns - place->ahead_cpu_ns) : 0;

    return !(its > 0 && all > its) ? 1 : all < SCALE_MOST * its ? all / its : SCALE_MOST;
}

void budget_scale_trials(struct budget *budget, uint64_t cpu_ns)
{
    double all = cpu_ns > budget->used_ns ? (double)(cpu_ns - budget->used_ns) : 0;

    for (size_t n = 0; n < budget->image_count; n++) {
        struct budget_image *place = &budget->images[n];
        uint64_t now = place->ahead ? process_cpu_ns(place->ahead) : 0;
        double scale = scale_of(place, now, all);

        for (uint32_t i = 0; place->ahead && i < place->image->function_count; i++) {
            uint32_t number = place->image->first_function + i;

            if (budget_is_ahead(budget, number))
                budget_unit(budget, number)->scale = scale;
        }
        place->ahead_cpu_ns = now;
    }
    budget->used_ns = cpu_ns;
}

/* ------------------------------------------------------------------------------------ moves */

/* Functions of an image that could not be given their inline probes stay excluded. */
static void keep_excluded(struct budget *budget, const struct traced_image *image)
{
    for (uint32_t i = 0; i < image->function_count; i++) {
        uint32_t number = image->first_function + i;

        if (budget->accounts.functions[number].inlined && !budget_unit(budget, number)->excluded &&
            budget->away[budget->accounts.functions[number].unit])
            policy_keep_excluded(budget_unit(budget, number), clock_ns(CLOCK_MONOTONIC));
    }
}

/* `ahead`: in the process where functions are tried. */
static void list_excluded(const struct budget *budget, const struct traced_image *image, bool ahead,
                          bool *ret_out)
{
    for (uint32_t i = 0; i < image->function_count; i++) {
        uint32_t number = image->first_function + i;

        ret_out[i] = number < budget->accounts.function_count && budget->accounts.functions[number].inlined &&
                     (budget_unit(budget, number)->excluded || (!ahead && budget_is_ahead(budget, number)));
    }
}

void budget_inline_excluded(const struct budget *budget, const struct traced_image *image, bool *ret_out)
{
    list_excluded(budget, image, false, ret_out);
}

int budget_change_inline(struct budget *budget, const struct budget_image *place, struct error *err)
{
    const struct traced_image *image = place->image;
    AUTO_FREE bool *out = calloc(image->function_count + 1, sizeof(*out));
    AUTO_FREE bool *out_ahead = calloc(image->function_count + 1, sizeof(*out_ahead));
    struct backend_choice choice = {.out = out, .ahead = place->ahead, .out_ahead = out_ahead};
    struct error why = {0};
    int r;

    if (!out || !out_ahead)
        return error_no_memory(err);
    list_excluded(budget, image, false, out);
    list_excluded(budget, image, true, out_ahead);
    r = budget->options.inlined->of->choose(budget->options.inlined, image->inlined, &choice, &why);
    if (r == -ENOMEM)
        return error_no_memory(err);
    if (r)
        keep_excluded(budget, image);
    return 0;
}

int budget_move_inline(struct budget *budget, struct error *err)
{
    int r = 0;

    for (size_t i = 0; !r && budget->options.inlined && i < budget->image_count; i++) {
        if (!budget->images[i].image->inlined)
            continue;
        begin_trials(budget, &budget->images[i]);
        r = budget_change_inline(budget, &budget->images[i], err);
    }
    return r;
}
