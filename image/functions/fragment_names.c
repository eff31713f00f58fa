/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/functions/fragment_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static int compare_names(const void *left, const void *right)
{
    const struct image_function *const *a = left, *const *b = right;

    return strcmp((*a)->name, (*b)->name);
}

/* The only function called `name`, of those sorted by name; NULL: there is none, or several. */
static const struct image_function *only_one_named(const struct image_function **named, size_t count,
                                                   char *name)
{
    const struct image_function key = {.name = name}, *wanted = &key;
    const struct image_function **found = bsearch(&wanted, named, count, sizeof(*named), compare_names);

    if (!found || (found > named && strcmp(found[-1]->name, name) == 0) ||
        (found + 1 < named + count && strcmp(found[1]->name, name) == 0))
        return NULL;
    return *found;
}

int fragment_names_find_owners(struct image_function *functions, size_t count)
{
    AUTO_FREE const struct image_function **named = malloc(count * sizeof(*named));

    if (!named)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        named[i] = &functions[i];
    qsort(named, count, sizeof(*named), compare_names);
    for (size_t i = 0; i < count; i++) {
        struct image_function *fragment = &functions[i];
        const char *suffix = strstr(fragment->name, ".cold");
        AUTO_FREE char *stem = suffix ? strndup(fragment->name, (size_t)(suffix - fragment->name)) : NULL;
        const struct image_function *owner;

        if (!(fragment->flags & IMAGE_FUNCTION_FRAGMENT) || fragment->part_of || fragment->aliases || !stem)
            continue;
        owner = only_one_named(named, count, stem);
        if (owner)
            fragment->part_of = owner->address;
    }
    return 0;
}
