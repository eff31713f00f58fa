/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/recording/trigger.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "bpf/wire.h"

struct enrolled {
    struct traced_image *image;
    bool *reported; /* of each of its functions: a row of `blind` has begun */
};

struct trigger {
    struct trigger_options options;
    struct budget_slot *slots; /* by index of the probe */
    struct enrolled *enrolled;
    size_t count, capacity;
    bool is_there;
};

int trigger_new(const struct trigger_options *options, struct trigger **ret_trigger, struct error *err)
{
    struct trigger *trigger = calloc(1, sizeof(*trigger));

    if (!trigger)
        return error_no_memory(err);
    trigger->options = *options;
    trigger->slots = options->backend->of->counts(options->backend);
    *ret_trigger = trigger;
    return 0;
}

void trigger_free(struct trigger *trigger)
{
    if (!trigger)
        return;
    for (size_t i = 0; i < trigger->count; i++)
        free(trigger->enrolled[i].reported);
    free(trigger->enrolled);
    free(trigger);
}

bool trigger_is_there(const struct trigger *trigger)
{
    return trigger->is_there;
}

/* A function whose first instruction calls a trigger shares its probe, and opens the window in its place. */
static void mark(struct trigger *trigger, const struct traced_image *image)
{
    for (size_t i = 0; i < image->site_count; i++) {
        struct budget_slot *slot = &trigger->slots[(uint32_t)image->cookies[i]];

        if (image->cookies[i] & (COOKIE_NEXT_CALL | COOKIE_NEXT_JUMP))
            slot[0].trigger |= slot[1].trigger;
    }
}

static int enter(struct trigger *trigger, struct traced_image *image, struct error *err)
{
    bool *reported = calloc(image->function_count + 1, sizeof(*reported));

    if (!reported || array_reserve(&trigger->enrolled, &trigger->capacity, trigger->count + 1)) {
        free(reported);
        return error_no_memory(err);
    }
    trigger->enrolled[trigger->count++] = (struct enrolled){image, reported};
    return 0;
}

int trigger_enrol(struct trigger *trigger, struct traced_image *image, struct error *err)
{
    const struct trigger_options *options = &trigger->options;

    for (size_t i = 0; i < trigger->count; i++)
        if (trigger->enrolled[i].image == image)
            return 0;
    if (image->first_index + image->plan->count > MAX_BUDGET_PROBES)
        return error_say(err, -E2BIG, "%s: too many functions for a trigger (choose with --functions)",
                         image->path);
    if (enter(trigger, image, err))
        return -ENOMEM;
    for (size_t i = 0; i < image->plan->count; i++) {
        const struct plan_probe *probe = &image->plan->probes[i];
        bool opens = probe->kind != PLAN_AT_RETURN &&
                     options->opens(options->context, image->elf, &image->functions[probe->function]);

        trigger->slots[image->first_index + i].trigger = opens;
        trigger->is_there |= opens;
    }
    mark(trigger, image);
    return 0;
}

/* ------------------------------------------------------------------------------------ what is not recorded
 */

/* Of each of an image's functions. NULL: no memory. */
static uint64_t *count_outside(const struct trigger *trigger, const struct traced_image *image)
{
    uint64_t *outside = calloc(image->function_count + 1, sizeof(*outside));

    for (size_t i = 0; outside && i < image->plan->count; i++)
        outside[image->plan->probes[i].function] +=
            __atomic_load_n(&trigger->slots[image->first_index + i].outside, __ATOMIC_RELAXED);
    return outside;
}

/* Begins the row of a function, or (`to_ns`) says what stands in it in the end. */
static int tell(const struct trigger *trigger, struct enrolled *enrolled, uint32_t f, uint64_t calls,
                uint64_t to_ns, struct error *err)
{
    const struct trigger_options *options = &trigger->options;
    uint64_t from_ns = options->from_ns;
    double rate = to_ns > from_ns ? (double)calls / (double)(to_ns - from_ns) * 1e9 : 0;
    uint32_t function_id;
    int r = image_table_function_id(options->images, options->writer, enrolled->image->first_function + f,
                                    &function_id, err);

    if (!r && !enrolled->reported[f])
        r = trace_writer_blind(options->writer, function_id, from_ns, 0, TRIGGER_CAUSE, rate, err);
    enrolled->reported[f] = true;
    if (!r && to_ns)
        r = trace_writer_blind_end(options->writer, function_id, from_ns, 0, (int64_t)calls, rate, err);
    return r;
}

static int tell_all(struct trigger *trigger, uint64_t to_ns, struct error *err)
{
    int r = 0;

    for (size_t i = 0; !r && i < trigger->count; i++) {
        struct enrolled *enrolled = &trigger->enrolled[i];
        AUTO_FREE uint64_t *outside = count_outside(trigger, enrolled->image);

        if (!outside)
            return error_no_memory(err);
        for (uint32_t f = 0; !r && f < enrolled->image->function_count; f++)
            if (outside[f] && (to_ns || !enrolled->reported[f]))
                r = tell(trigger, enrolled, f, outside[f], to_ns, err);
    }
    return r;
}

int trigger_sample(struct trigger *trigger, struct error *err)
{
    return tell_all(trigger, 0, err);
}

int trigger_finish(struct trigger *trigger, uint64_t to_ns, struct error *err)
{
    return tell_all(trigger, to_ns, err);
}
