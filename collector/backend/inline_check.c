/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether a patched process still has the jumps that were put into it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "collector/backend/inline_state.h"

#define INT3 0xcc

/* A debugger's breakpoint on the jump takes nothing away; nor is one lost that may be out at present. */
static bool is_lost(int memory, const struct family *family, size_t i)
{
    const struct inline_patch *patch = &family->patch.patches[i];
    uint8_t now[DISPLACE_JUMP];

    if (pread(memory, now, sizeof(now), (off_t)patch->address) != (ssize_t)sizeof(now))
        return false; /* it is ending, or nothing is mapped there any more, which it would not survive */
    if (now[0] == INT3)
        now[0] = patch->new[0];
    return memcmp(now, patch->new, sizeof(now)) &&
           (!family->varies[i] || memcmp(now, patch->old, sizeof(now)));
}

int inline_backend_overwritten(const struct inline_backend *backend, pid_t pid,
                               const struct inline_image **ret_inlined, bool **ret_lost)
{
    AUTO_FREE bool *lost = NULL;
    AUTO_CLOSE int memory = -1;
    const struct member *member;
    const struct family *family;
    char path[64];
    size_t patch = 0;

    HASH_FIND(hh, backend->members, &pid, sizeof(pid), member);
    if (!member || member->shares || member->restored)
        return 0;
    family = member->family;
    lost = calloc(family->inlined->count + 1, sizeof(*lost));
    if (!lost)
        return -ENOMEM;
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
    memory = open(path, O_RDONLY | O_CLOEXEC);
    for (size_t i = 0; i < family->inlined->count; i++)
        if (family->inlined->chosen[i])
            lost[i] = is_lost(memory, family, patch++);
    *ret_inlined = family->inlined;
    *ret_lost = take_pointer(lost);
    return 0;
}
