/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Takes some of the functions of patched processes out, and puts them in again. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "collector/inline/inline_state.h"
#include "collector/process/process.h"

/* Changes those patches of an image in a process that `which` says (NULL: all); -ENOMEM, or why they could not
 * be put in. */
static int change_member(const struct member *member, const struct patched_image *image, const bool *which,
                         bool in, struct error *err)
{
    const struct live_patch *all = &image->patch;
    AUTO_FREE struct inline_patch *patches = calloc(all->count + 1, sizeof(*patches));
    AUTO_FREE bool *varies = calloc(all->count + 1, sizeof(*varies));
    struct live_patch some = *all;
    int r;

    if (!patches || !varies)
        return error_no_memory(err);
    some.patches = patches;
    some.varies = varies;
    some.out = NULL;
    some.count = 0;
    for (size_t i = 0; i < all->count; i++) {
        if (which && !which[i])
            continue;
        varies[some.count] = true;
        patches[some.count++] = all->patches[i];
    }
    r = some.count ? live_patch_change(member->pid, &some, in, err) : 0;
    return r == -ESRCH || r == -ESTALE ? 0 : r;
}

/* Which of its patches are to be in. NULL: no memory. The caller frees it. `varied`: of those that have been
 * out. */
static bool *wanted(const struct patched_image *image, bool varied)
{
    bool *in = calloc(image->patch.count + 1, sizeof(*in));

    for (size_t i = 0; in && i < image->patch.count; i++)
        in[i] = !image->out[i] && (!varied || image->varies[i]);
    return in;
}

int inline_catch_up(const struct member *member, const struct patched_image *image, struct error *err)
{
    AUTO_FREE bool *in = wanted(image, true);
    int r = 0;

    if (!in)
        return error_no_memory(err);
    if (!image->inlined->left)
        r = change_member(member, image, in, true, err);
    if (r != -ENOMEM && change_member(member, image, image->out, false, NULL) == -ENOMEM)
        return error_no_memory(err);
    return r;
}

int inline_put_in_again(const struct member *member, const struct patched_image *image, struct error *err)
{
    AUTO_FREE bool *in = wanted(image, false);

    if (!in)
        return error_no_memory(err);
    return image->inlined->left ? 0 : change_member(member, image, in, true, err);
}

void inline_take_out_all(const struct member *member, const struct patched_image *image)
{
    change_member(member, image, NULL, false, NULL);
}

/* Which patches of an image are to change so that those are out that `out` says, by function. Returns whether
 * any is. */
static bool changes(const struct patched_image *image, const bool *out, bool in, bool *ret_which)
{
    bool any = false;

    for (size_t i = 0; i < image->patch.count; i++) {
        bool is_out = out[image->inlined->places[i].function];

        ret_which[i] = in ? image->out[i] && !is_out : !image->out[i] && is_out;
        any |= ret_which[i];
    }
    return any;
}

/* In all members of a family that have the image. Those that could not be put into one of them are still out.
 */
static int change_image(struct inline_backend *backend, struct patched_image *image, const bool *which,
                        bool in, struct error *err)
{
    struct member *member = NULL, *next = NULL;
    int r = 0;

    for (size_t i = 0; i < image->patch.count; i++)
        image->varies[i] |= which[i];
    HASH_ITER (hh, backend->members, member, next) {
        struct error why = {0};
        int code = member->shares || member->restored || !inline_has_place(member, image)
                       ? 0
                       : change_member(member, image, which, in, &why);

        if (!code || (!in && code != -ENOMEM) || r)
            continue;
        r = code;
        if (err)
            *err = why;
    }
    for (size_t i = 0; !r && i < image->patch.count; i++)
        if (which[i])
            image->out[i] = !in;
    image->changed_ns = clock_ns(CLOCK_MONOTONIC);
    return r;
}

static int choose_for(struct inline_backend *backend, struct patched_image *image, const bool *out,
                      bool *which, struct error *err)
{
    int r = 0;

    if (changes(image, out, false, which))
        r = change_image(backend, image, which, false, err);
    if (!r && !image->inlined->left && changes(image, out, true, which))
        r = change_image(backend, image, which, true, err);
    return r;
}

int inline_choose(struct backend *base, const struct inline_image *inlined,
                  const struct backend_choice *choice, struct error *err)
{
    struct inline_backend *backend = inline_of(base);
    AUTO_FREE bool *which = calloc(inlined->place_count + 1, sizeof(*which));
    struct member *member = NULL, *next = NULL, *ahead = NULL;
    int r = 0;

    if (!which)
        return error_no_memory(err);
    HASH_FIND(hh, backend->members, &choice->ahead, sizeof(choice->ahead), ahead);
    pulse_hold(backend->pulse);
    HASH_ITER (hh, backend->members, member, next) {
        bool is_ahead = ahead && ahead->family == member->family;

        /* The first member of a family changes it, and nothing is left for the others. */
        for (struct patched_image *image = member->family->images; image && r != -ENOMEM; image = image->next)
            if (image->inlined == inlined)
                r = choose_for(backend, image, is_ahead ? choice->out_ahead : choice->out, which, err);
    }
    pulse_resume(backend->pulse);
    return r;
}

pid_t inline_busiest(struct backend *base, const struct inline_image *inlined)
{
    struct inline_backend *backend = inline_of(base);
    struct member *member = NULL, *next = NULL;
    const struct member *busiest = NULL;
    uint64_t most = 0;
    bool several = false;

    HASH_ITER (hh, backend->members, member, next) {
        uint64_t used, ran;

        if (member->shares || !inline_has_image(base, member->pid, inlined))
            continue;
        used = process_cpu_ns(member->pid);
        ran = used > member->used_ns ? used - member->used_ns : 0;
        member->used_ns = used;
        several |= busiest && busiest->family != member->family;
        if (busiest && ran <= most)
            continue;
        busiest = member;
        most = ran;
    }
    return several ? busiest->pid : 0;
}

uint64_t inline_ran(struct backend *base)
{
    struct inline_backend *backend = inline_of(base);
    struct member *member = NULL, *next = NULL;
    uint64_t sum = 0;

    HASH_ITER (hh, backend->members, member, next) {
        uint64_t used = process_cpu_ns(member->pid);

        sum += used > member->ran_ns ? used - member->ran_ns : 0;
        member->ran_ns = used;
    }
    return sum;
}
