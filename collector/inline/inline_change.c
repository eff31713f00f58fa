/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Takes some of the functions of patched processes out, and puts them in again. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "collector/inline/inline_state.h"
#include "collector/process/process.h"

/* Changes those patches of a process that `which` says; -ENOMEM, or why they could not be put in. */
static int change_member(const struct member *member, const bool *which, bool in, struct error *err)
{
    const struct live_patch *all = &member->family->patch;
    AUTO_FREE struct inline_patch *patches = calloc(all->count + 1, sizeof(*patches));
    AUTO_FREE bool *varies = calloc(all->count + 1, sizeof(*varies));
    struct live_patch some = {.area = all->area, .head = all->head, .patches = patches, .varies = varies};
    int r;

    if (!patches || !varies)
        return error_no_memory(err);
    for (size_t i = 0; i < all->count; i++) {
        if (!which[i])
            continue;
        varies[some.count] = true;
        patches[some.count++] = all->patches[i];
    }
    r = some.count ? live_patch_change(member->pid, &some, in, err) : 0;
    return r == -ESRCH ? 0 : r;
}

int inline_catch_up(const struct member *member, struct error *err)
{
    const struct family *family = member->family;
    AUTO_FREE bool *in = calloc(family->patch.count + 1, sizeof(*in));
    int r = 0;

    if (!in)
        return error_no_memory(err);
    for (size_t i = 0; i < family->patch.count; i++)
        in[i] = family->varies[i] && !family->out[i];
    if (!family->inlined->left)
        r = change_member(member, in, true, err);
    if (r != -ENOMEM && change_member(member, family->out, false, NULL) == -ENOMEM)
        return error_no_memory(err);
    return r;
}

/* Which patches of a family are to change so that those are out that `out` says, by function. Returns whether
 * any is. */
static bool changes(const struct family *family, const bool *out, bool in, bool *ret_which)
{
    bool any = false;

    for (size_t i = 0; i < family->patch.count; i++) {
        bool is_out = out[family->inlined->places[i].function];

        ret_which[i] = in ? family->out[i] && !is_out : !family->out[i] && is_out;
        any |= ret_which[i];
    }
    return any;
}

/* In all members of a family. Those that could not be put into one of them are still out. */
static int change_family(struct inline_backend *backend, struct family *family, const bool *which, bool in,
                         struct error *err)
{
    struct member *member = NULL, *next = NULL;
    int r = 0;

    for (size_t i = 0; i < family->patch.count; i++)
        family->varies[i] |= which[i];
    HASH_ITER (hh, backend->members, member, next) {
        struct error why = {0};
        int code = member->family != family || member->shares || member->restored
                       ? 0
                       : change_member(member, which, in, &why);

        if (!code || (!in && code != -ENOMEM) || r)
            continue;
        r = code;
        if (err)
            *err = why;
    }
    for (size_t i = 0; !r && i < family->patch.count; i++)
        if (which[i])
            family->out[i] = !in;
    family->changed_ns = clock_ns(CLOCK_MONOTONIC);
    return r;
}

static int choose_for(struct inline_backend *backend, struct family *family, const bool *out, bool *which,
                      struct error *err)
{
    int r = 0;

    if (changes(family, out, false, which))
        r = change_family(backend, family, which, false, err);
    if (!r && !family->inlined->left && changes(family, out, true, which))
        r = change_family(backend, family, which, true, err);
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

        if (r == -ENOMEM || member->family->inlined != inlined)
            continue; /* the first member of a family changes it, and nothing is left for the others */
        r = choose_for(backend, member->family, is_ahead ? choice->out_ahead : choice->out, which, err);
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

        if (member->family->inlined != inlined || member->shares)
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
