/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/order/sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/array.h"

struct text {
    uint32_t number;
    UT_hash_handle hh;
    char bytes[]; /* the key */
};

struct known_place {
    struct sample_place place; /* the key: without gaps, see place_key() */
    uint32_t number;
    UT_hash_handle hh;
};

struct sample_index {
    struct text *by_text;
    struct text **texts; /* by number - 1 */
    size_t text_count, text_capacity;
    struct known_place *by_place;
};

/* ---------------------------------------------------------------------------------------------- life */

int sample_set_new(struct sample_set **ret_set)
{
    struct sample_set *set = calloc(1, sizeof(*set));

    if (set)
        set->index = calloc(1, sizeof(*set->index));
    if (!set || !set->index) {
        free(set);
        return -ENOMEM;
    }
    *ret_set = set;
    return 0;
}

static void index_free(struct sample_index *index)
{
    struct known_place *place, *next_place;
    struct text *text, *next_text;

    HASH_ITER (hh, index->by_place, place, next_place) {
        HASH_DEL(index->by_place, place);
        free(place);
    }
    HASH_ITER (hh, index->by_text, text, next_text) {
        HASH_DEL(index->by_text, text);
        free(text);
    }
    free(index->texts);
    free(index);
}

void sample_set_free(struct sample_set *set)
{
    if (!set)
        return;
    index_free(set->index);
    free(set->images);
    free(set->places);
    free(set->threads);
    free(set->stacks);
    free(set);
}

/* ---------------------------------------------------------------------------------------------- texts */

static struct text *add_text(struct sample_index *index, const char *bytes, size_t length)
{
    struct text *text;

    if (array_reserve(&index->texts, &index->text_capacity, index->text_count + 1) < 0)
        return NULL;
    text = calloc(1, sizeof(*text) + length + 1);
    if (!text)
        return NULL;
    memcpy(text->bytes, bytes, length);
    text->number = (uint32_t)index->text_count + 1;
    HASH_ADD(hh, index->by_text, bytes, (unsigned)length, text);
    if (!text->hh.tbl) {
        free(text);
        return NULL;
    }
    index->texts[index->text_count++] = text;
    return text;
}

int sample_set_text(struct sample_set *set, const char *text, uint32_t *ret_number)
{
    size_t length = text ? strlen(text) : 0;
    struct text *found;

    if (length == 0) {
        *ret_number = 0;
        return 0;
    }
    HASH_FIND(hh, set->index->by_text, text, (unsigned)length, found);
    if (!found)
        found = add_text(set->index, text, length);
    if (!found)
        return -ENOMEM;
    *ret_number = found->number;
    return 0;
}

const char *sample_text(const struct sample_set *set, uint32_t number)
{
    return number ? set->index->texts[number - 1]->bytes : "";
}

bool sample_is_goroutine(const struct sample_set *set, const struct sample_thread *thread)
{
    return strchr(sample_text(set, thread->label), 'g');
}

/* ---------------------------------------------------------------------------------------------- images */

int sample_set_image(struct sample_set *set, const char *path, const char *file, const char *build_id,
                     uint32_t *ret_number)
{
    struct sample_image image = {0};

    if (sample_set_text(set, path, &image.path) < 0 || sample_set_text(set, file, &image.file) < 0 ||
        sample_set_text(set, build_id, &image.build_id) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < set->image_count; i++) {
        const struct sample_image *other = &set->images[i];

        if (image.build_id == other->build_id && (image.build_id || image.path == other->path)) {
            *ret_number = (uint32_t)i;
            return 0;
        }
    }
    if (array_reserve(&set->images, &set->image_capacity, set->image_count + 1) < 0)
        return -ENOMEM;
    *ret_number = (uint32_t)set->image_count;
    set->images[set->image_count++] = image;
    return 0;
}

/* ---------------------------------------------------------------------------------------------- places */

/* The same values in zeroed memory, so that the bytes between the fields compare as equal, too. */
static void place_key(const struct sample_place *place, struct sample_place *key)
{
    memset(key, 0, sizeof(*key));
    key->image = place->image;
    key->function = place->function;
    key->file = place->file;
    key->line = place->line;
    key->address = place->address;
    key->entry = place->entry;
    key->flags = place->flags;
}

int sample_set_place(struct sample_set *set, const struct sample_place *place, uint32_t *ret_number)
{
    struct known_place *known;
    struct sample_place key;

    place_key(place, &key);
    HASH_FIND(hh, set->index->by_place, &key, sizeof(key), known);
    if (known) {
        *ret_number = known->number;
        return 0;
    }
    if (array_reserve(&set->places, &set->place_capacity, set->place_count + 1) < 0)
        return -ENOMEM;
    known = calloc(1, sizeof(*known));
    if (!known)
        return -ENOMEM;
    known->place = key;
    known->number = (uint32_t)set->place_count;
    HASH_ADD(hh, set->index->by_place, place, sizeof(key), known);
    if (!known->hh.tbl) {
        free(known);
        return -ENOMEM;
    }
    set->places[set->place_count++] = key;
    *ret_number = known->number;
    return 0;
}

/* ---------------------------------------------------------------------------------------------- threads */

int sample_set_thread(struct sample_set *set, const struct sample_thread *thread, const uint32_t *places,
                      size_t count)
{
    struct sample_thread *added;

    if (array_reserve(&set->threads, &set->thread_capacity, set->thread_count + 1) < 0 ||
        array_reserve(&set->stacks, &set->stack_capacity, set->stack_count + count) < 0)
        return -ENOMEM;
    added = &set->threads[set->thread_count++];
    *added = *thread;
    added->first = set->stack_count;
    added->count = count;
    if (count)
        memcpy(set->stacks + set->stack_count, places, count * sizeof(*places));
    set->stack_count += count;
    return 0;
}
