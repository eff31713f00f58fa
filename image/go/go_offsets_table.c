/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Offsets by version, as the DWARF of programs made by go 1.19.8, 1.22.12 and 1.23.5 for amd64 has them. A
 * row is right for the whole minor version: its patches do not touch these structures. */
#include "image/go/go_offsets.h"

#include <string.h>

#include "base/array.h"

static const struct {
    unsigned minor;
    int32_t offsets[GO_OFFSETS];
} known[] = {
    {19,
     {[GO_G_STACKGUARD0] = 16,
      [GO_G_M] = 48,
      [GO_G_ATOMICSTATUS] = 144,
      [GO_G_GOID] = 152,
      [GO_G_WAITREASON] = 176,
      [GO_G_PREEMPT] = 177,
      [GO_G_PARENT_GOID] = GO_NO_OFFSET,
      [GO_M_G0] = 0,
      [GO_M_CURG] = 192,
      [GO_M_LOCKS] = 264,
      [GO_M_MALLOCING] = 240}},
    {22,
     {[GO_G_STACKGUARD0] = 16,
      [GO_G_M] = 48,
      [GO_G_ATOMICSTATUS] = 144,
      [GO_G_GOID] = 152,
      [GO_G_WAITREASON] = 176,
      [GO_G_PREEMPT] = 177,
      [GO_G_PARENT_GOID] = 272,
      [GO_M_G0] = 0,
      [GO_M_CURG] = 192,
      [GO_M_LOCKS] = 264,
      [GO_M_MALLOCING] = 240}},
    {23,
     {[GO_G_STACKGUARD0] = 16,
      [GO_G_M] = 48,
      [GO_G_ATOMICSTATUS] = 152,
      [GO_G_GOID] = 160,
      [GO_G_WAITREASON] = 184,
      [GO_G_PREEMPT] = 185,
      [GO_G_PARENT_GOID] = 280,
      [GO_M_G0] = 0,
      [GO_M_CURG] = 192,
      [GO_M_LOCKS] = 264,
      [GO_M_MALLOCING] = 240}},
};

bool go_offsets_from_table(const struct go_version *version, int32_t offsets[GO_OFFSETS])
{
    if (version->major != 1 || version->experiment)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        if (known[i].minor != version->minor)
            continue;
        memcpy(offsets, known[i].offsets, sizeof(known[i].offsets));
        return true;
    }
    return false;
}
