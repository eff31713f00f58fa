/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/flow/flow_switch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t entry_of(const struct switch_table *table, const uint8_t *bytes, size_t index)
{
    uint64_t address;
    int32_t distance;

    if (table->distances) {
        memcpy(&distance, bytes + index * sizeof(distance), sizeof(distance));
        return table->address + (uint64_t)(int64_t)distance;
    }
    memcpy(&address, bytes + index * sizeof(address), sizeof(address));
    return address;
}

int flow_switch_targets(struct elf_image *image, const struct flow_run *run, uint64_t **ret_targets,
                        size_t *ret_count)
{
    struct switch_table table = {0};
    const uint8_t *bytes;
    uint64_t *targets;
    size_t size = 0;

    if (!switch_table_find(run, &table))
        return -ENOENT;
    bytes = elf_image_bytes(image, table.address, &size);
    if (table.entries == 0 || !bytes || size / (table.distances ? 4 : 8) < table.entries)
        return -ENOENT;
    targets = calloc(table.entries, sizeof(*targets));
    if (!targets)
        return -ENOMEM;
    for (size_t i = 0; i < table.entries; i++)
        targets[i] = entry_of(&table, bytes, i);
    *ret_targets = targets;
    *ret_count = table.entries;
    return 0;
}
