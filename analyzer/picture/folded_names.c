/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/picture/folded_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ELLIPSIS "\xe2\x80\xa6"

char *folded_name(const char *const *names, const uint32_t *objects, size_t count)
{
    const char *first = names[objects[0]], *last = names[objects[count - 1]];
    char *text = NULL;
    int r;

    if (count == 1)
        return strdup(first);
    if (count == 2)
        r = asprintf(&text, "%s, %s", first, last);
    else if (objects[count - 1] - objects[0] == count - 1)
        r = asprintf(&text, "%s " ELLIPSIS " %s (%zu)", first, last, count);
    else
        r = asprintf(&text, "%s, %s, " ELLIPSIS " (%zu)", first, names[objects[1]], count);
    return r < 0 ? NULL : text;
}

/* How many objects from `at` on are neighbours. */
static size_t range_length(const uint32_t *objects, size_t count, size_t at)
{
    size_t end = at + 1;

    while (end < count && objects[end] == objects[end - 1] + 1)
        end++;
    return end - at;
}

char *folded_ranges(const char *const *names, const uint32_t *objects, size_t count, size_t most)
{
    char *text = NULL;
    size_t size = 0, ranges = 0, at = 0;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    while (at < count && ranges < most) {
        size_t length = range_length(objects, count, at);

        if (length == 2)
            length = 1;
        fprintf(out, "%s%s", ranges++ ? ", " : "", names[objects[at]]);
        if (length > 1)
            fprintf(out, " " ELLIPSIS " %s", names[objects[at + length - 1]]);
        at += length;
    }
    if (at < count)
        fprintf(out, " and %zu more", count - at);
    if (fclose(out)) {
        free(text);
        return NULL;
    }
    return text;
}

static int compare_objects(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

void folded_sort(uint32_t *objects, size_t count)
{
    qsort(objects, count, sizeof(*objects), compare_objects);
}
