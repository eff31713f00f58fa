/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether a patched process still has the jumps that were put into it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "collector/inline/inline_state.h"
#include "collector/process/target_memory.h"
#include "image/arch/code_bytes.h"

/* A debugger's breakpoint on the jump takes nothing away; nor is one lost that may be out at present, or is of a
 * library that is being loaded anew. */
static bool is_lost(const struct patched_image *image, size_t i, uint8_t now[DISPLACE_JUMP])
{
    const struct inline_patch *patch = &image->patch.patches[i];

    if (code_is_trap(now))
        now[0] = patch->new[0];
    return memcmp(now, patch->new, DISPLACE_JUMP) &&
           (!(image->varies[i] || image->patch.file.inode) || memcmp(now, patch->old, DISPLACE_JUMP));
}

/* What could not be read is not lost: the process is ending, or its page is not there. */
static int look(pid_t pid, const struct patched_image *image, bool *lost)
{
    size_t count = image->patch.count, readable;
    AUTO_FREE uint64_t *addresses = calloc(count + 1, sizeof(*addresses));
    AUTO_FREE uint8_t(*now)[DISPLACE_JUMP] = calloc(count + 1, sizeof(*now));

    if (!addresses || !now)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        addresses[i] = image->patch.patches[i].address;
    readable = target_memory_read_pieces(pid, addresses, count, DISPLACE_JUMP, now);
    for (size_t i = 0; i < count; i++)
        lost[image->inlined->places[i].function] |= i < readable && is_lost(image, i, now[i]);
    return 0;
}

int inline_overwritten(const struct backend *backend, pid_t pid, size_t index,
                       const struct inline_image **ret_inlined, bool **ret_lost)
{
    const struct member *member = inline_find_member(inline_of(backend), pid);
    const struct patched_image *image;
    AUTO_FREE bool *lost = NULL;

    if (!member || member->shares || member->restored || index >= member->image_count)
        return 0;
    image = member->images[index];
    lost = calloc(image->inlined->count + 1, sizeof(*lost));
    if (!lost || look(pid, image, lost))
        return -ENOMEM;
    /* A library that is unloaded takes its probes with it; that is no loss of its own. */
    if (!live_patch_is_there(pid, &image->patch))
        memset(lost, false, image->inlined->count * sizeof(*lost));
    *ret_inlined = image->inlined;
    *ret_lost = take_pointer(lost);
    return 0;
}
