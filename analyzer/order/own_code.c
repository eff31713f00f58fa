/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/order/own_code.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

/* A library of the system: by its place and its name. Programs are installed there, too. */
static bool is_of_system(const char *path)
{
    static const char *const folders[] = {"/lib/",     "/lib64/",     "/lib32/",
                                          "/usr/lib/", "/usr/lib64/", "/usr/lib32/"};
    const char *slash = strrchr(path, '/');

    if (!slash)
        return *path == '['; /* [vdso] */
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0)
            return strstr(slash, ".so") != NULL;
    return false;
}

uint32_t *own_code_ends(const struct sample_set *set)
{
    AUTO_FREE bool *of_system = calloc(set->image_count + 1, sizeof(*of_system));
    uint32_t *ends = of_system ? calloc(set->thread_count + 1, sizeof(*ends)) : NULL;

    for (size_t i = 0; ends && i < set->image_count; i++)
        of_system[i] = is_of_system(sample_text(set, set->images[i].path));
    for (size_t i = 0; ends && i < set->thread_count; i++) {
        size_t count = set->threads[i].count;

        for (size_t frame = 0; frame < count; frame++) {
            const struct sample_place *place = sample_place_of(set, i, frame);

            if (place->image != SAMPLE_NO_IMAGE && !of_system[place->image])
                ends[i] = (uint32_t)frame + 1;
        }
        ends[i] = ends[i] ? ends[i] : (uint32_t)count;
    }
    return ends;
}

bool own_code_goes_on(const struct prefix_tree *tree, uint32_t node, const uint32_t *ends)
{
    const struct prefix_node *at = &tree->nodes[node];

    for (size_t i = 0; i < at->count; i++)
        if (ends[tree->threads[at->first + i]] > at->depth + 1)
            return true;
    return false;
}
