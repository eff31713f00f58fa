/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stacks/place_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/cleanup.h"
#include "image/elf/demangle.h"
#include "image/source/source_frames.h"

/* By what things are looked up; no bytes between the fields. */
struct names_key {
    uint64_t owner; /* the process, or the image */
    uint64_t address;
    uint64_t more; /* the inode, or the flags */
};

/* A mapping that was looked at. */
struct known_mapping {
    struct names_key key;
    struct code_image *image; /* NULL: none */
    uint64_t bias;
    UT_hash_handle hh;
};

/* An instruction that was looked at. */
struct known_address {
    struct names_key key;
    uint32_t numbers[PLACES_MAX];
    size_t count;
    UT_hash_handle hh;
};

struct place_names {
    struct code_images *images;
    struct sample_set *set;
    struct known_mapping *mappings;
    struct known_address *addresses;
};

int place_names_new(struct code_images *images, struct sample_set *set, struct place_names **ret_names)
{
    struct place_names *names = calloc(1, sizeof(*names));

    if (!names)
        return -ENOMEM;
    names->images = images;
    names->set = set;
    *ret_names = names;
    return 0;
}

void place_names_free(struct place_names *names)
{
    struct known_mapping *mapping, *next_mapping;
    struct known_address *address, *next_address;

    if (!names)
        return;
    HASH_ITER (hh, names->mappings, mapping, next_mapping) {
        HASH_DEL(names->mappings, mapping);
        free(mapping);
    }
    HASH_ITER (hh, names->addresses, address, next_address) {
        HASH_DEL(names->addresses, address);
        free(address);
    }
    free(names);
}

static struct names_key make_key(uint64_t owner, uint64_t address, uint64_t more)
{
    struct names_key key;

    memset(&key, 0, sizeof(key));
    key.owner = owner;
    key.address = address;
    key.more = more;
    return key;
}

/* ------------------------------------------------------------------------------------------------- images
 */

static int add_mapping(struct place_names *names, const struct names_key *key, pid_t pid,
                       const struct live_mapping *mapping, struct known_mapping **ret_known)
{
    struct known_mapping *known = calloc(1, sizeof(*known));
    int r;

    if (!known)
        return -ENOMEM;
    known->key = *key;
    r = code_images_get(names->images, pid, mapping, &known->image);
    if (!r && elf_image_load_bias(known->image->elf, mapping->start,
                                  mapping->kind == LIVE_VDSO ? 0 : mapping->offset, &known->bias))
        known->image = NULL;
    if (r != -ENOMEM)
        HASH_ADD(hh, names->mappings, key, sizeof(known->key), known);
    if (r == -ENOMEM || !known->hh.tbl) {
        free(known);
        return -ENOMEM;
    }
    *ret_known = known;
    return 0;
}

int place_names_find(struct place_names *names, const struct process_code *code, uint64_t address,
                     struct code_place *ret_place)
{
    const struct live_mapping *mapping = live_maps_find(code->maps, address);
    struct known_mapping *known = NULL;

    if (mapping && mapping->executable && (mapping->kind == LIVE_FILE || mapping->kind == LIVE_VDSO)) {
        const struct names_key key = make_key((uint64_t)code->pid, mapping->start, mapping->inode);

        HASH_FIND(hh, names->mappings, &key, sizeof(key), known);
        if (!known && add_mapping(names, &key, code->pid, mapping, &known))
            return -ENOMEM;
    }
    *ret_place = (struct code_place){.address = address};
    if (known && known->image)
        *ret_place = (struct code_place){known->image, address - known->bias, known->bias};
    return 0;
}

/* ------------------------------------------------------------------------------------------------- places
 */

static int set_name(struct sample_set *set, const char *name, uint32_t *ret_number)
{
    AUTO_FREE char *demangled = name ? demangle(name) : NULL;

    return sample_set_text(set, demangled ? demangled : name, ret_number);
}

/* Adds the function's place, and those of what was inlined into it. */
static int add_places(struct place_names *names, const struct code_place *at, unsigned flags,
                      struct known_address *known)
{
    const struct image_function *function = code_image_function(at->image, at->address);
    struct source_frame frames[PLACES_MAX];
    size_t count = image_source_frames(at->image->elf, at->address, frames, PLACES_MAX);
    struct sample_place place = {
        .address = at->address, .entry = function ? function->address : SAMPLE_NO_ADDRESS, .flags = flags};
    struct sample_set *set = names->set;

    if (sample_set_image(set, at->image->path, at->image->file, elf_image_facts(at->image->elf)->build_id,
                         &place.image))
        return -ENOMEM;
    if (!count)
        frames[count++] = (struct source_frame){0};
    for (size_t i = 0; i < count; i++) {
        const char *name = i == 0 && function ? image_function_display_name(function) : frames[i].function;

        if (set_name(set, name, &place.function) || sample_set_text(set, frames[i].file, &place.file))
            return -ENOMEM;
        place.line = frames[i].line;
        if (sample_set_place(set, &place, &known->numbers[known->count++]))
            return -ENOMEM;
        place.flags = SAMPLE_INLINED;
    }
    return 0;
}

/* Code of no file: made at run time. */
static int add_unknown(struct place_names *names, const struct code_place *at, unsigned flags,
                       struct known_address *known)
{
    struct sample_place place = {
        .image = SAMPLE_NO_IMAGE, .address = at->address, .entry = SAMPLE_NO_ADDRESS, .flags = flags};

    return sample_set_place(names->set, &place, &known->numbers[known->count++]);
}

int place_names_places(struct place_names *names, const struct code_place *place, unsigned flags,
                       uint32_t *ret_numbers, size_t *ret_count)
{
    const struct names_key key = make_key((uintptr_t)place->image, place->address, flags);
    struct known_address *known;
    int r;

    HASH_FIND(hh, names->addresses, &key, sizeof(key), known);
    if (!known) {
        known = calloc(1, sizeof(*known));
        if (!known)
            return -ENOMEM;
        known->key = key;
        r = place->image ? add_places(names, place, flags, known) : add_unknown(names, place, flags, known);
        if (!r)
            HASH_ADD(hh, names->addresses, key, sizeof(known->key), known);
        if (r || !known->hh.tbl) {
            free(known);
            return -ENOMEM;
        }
    }
    memcpy(ret_numbers, known->numbers, known->count * sizeof(*ret_numbers));
    *ret_count = known->count;
    return 0;
}
