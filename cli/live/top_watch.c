/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sample, show, wait: on a screen, or as text that continues below. */
#include "base/clock.h"
#include "cli/common/signals.h"
#include "cli/live/top_live.h"

#define KEY_NS 50000000u /* the longest time until a key is answered */

static int show(const struct top_options *options, const struct top_view *view, struct error *err)
{
    if (options->batch)
        return top_print(view, options->limit, err);
    top_screen_show(view);
    return 0;
}

/* Until the next sample is due. `*ret_ended` as well by a key or a signal. */
static int wait_for_next(const struct top_options *options, const struct top_source *source, bool *ret_ended,
                         struct error *err)
{
    uint64_t until = clock_ns(CLOCK_MONOTONIC) + options->delay_ns, now;
    int r = 0;

    while (!r && !*ret_ended && (now = clock_ns(CLOCK_MONOTONIC)) < until) {
        uint64_t slice = until - now;

        if (!options->batch && slice > KEY_NS)
            slice = KEY_NS;
        r = source->wait(source->context, slice, ret_ended, err);
        *ret_ended |= signals_came() || (!options->batch && top_screen_key());
    }
    return r;
}

static int watch(const struct top_options *options, const struct top_source *source, struct error *err)
{
    struct top_view view = {0};
    bool ended = false;
    int r = wait_for_next(options, source, &ended, err); /* rates need some time */

    for (unsigned long i = 0; !r && (!options->iterations || i < options->iterations); i++) {
        if (i)
            r = wait_for_next(options, source, &ended, err);
        if (r || (ended && i))
            break;
        r = source->look(source->context, &view, err);
        if (r)
            break;
        view.counted = top_counted(&view);
        r = show(options, &view, err);
        if (ended)
            break;
    }
    return r;
}

int top_watch(const struct top_options *options, const struct top_source *source, struct error *err)
{
    int r = options->batch ? 0 : top_screen_open(err);

    if (r)
        return r;
    r = watch(options, source, err);
    if (!options->batch)
        top_screen_close();
    return r;
}
