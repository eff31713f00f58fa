/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The inline backend: the images that a family of processes has patched, and where.
 *
 * A library is loaded in some processes of a family and not in others, more than once, unloaded, and loaded
 * again. What was made for one place does for all processes that have it there, and for each time that it
 * comes back. Its stubs stay mapped until the recording leaves the process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "collector/inline/inline_state.h"
#include "collector/process/address_gap.h"
#include "collector/process/map_lines.h"
#include "collector/process/target_memory.h"

#define ATTEMPTS 3      /* to map stubs where there was an address gap a moment ago */
#define IMAGES_MAX 512u /* of a family: what it maps near them takes addresses from it */

void inline_free_image(struct patched_image *image)
{
    if (!image)
        return;
    inline_code_release(image->code);
    free(image->out);
    free(image->varies);
    free(image);
}

DEFINE_CLEANUP(cleanup_patched_image, struct patched_image *, inline_free_image)

/* Code of another family that does for this one as well; or NULL. */
static struct inline_code *find_code(const struct inline_backend *backend, const struct inline_image *inlined,
                                     const struct inline_order *order)
{
    for (struct member *member = backend->members; member; member = member->hh.next)
        for (struct patched_image *image = member->family->images; image; image = image->next)
            if (image->code && inline_code_is(image->code, inlined, order))
                return image->code;
    return NULL;
}

int inline_place_image(struct inline_backend *backend, const struct backend_target *target,
                       struct patched_image *image, struct error *err)
{
    const struct inline_image *inlined = target->inlined;
    struct inline_order order = {
        .functions = target->functions,
        .first_number = 1 + target->first_function,
        .load_bias = target->load_bias,
        .timed = backend->timed,
    };
    int r = address_gap_near(target->pid, inlined->low + target->load_bias, inlined->high + target->load_bias,
                             image->patch.near_bytes, &order.head, err);

    if (r)
        return r;
    inline_code_release(image->code);
    image->code = inline_code_share(find_code(backend, inlined, &order));
    r = image->code ? 0 : inline_code_new(inlined, &order, &image->code);
    if (r == -ENOMEM)
        return error_no_memory(err);
    if (r == -ERANGE)
        return error_say(err, r, "its code is too far from free addresses");
    if (r)
        return error_set(err, r, NULL, "cannot create memory to share with the target");
    image->patch.head = order.head;
    image->patch.patches = image->code->patches;
    image->patch.stubs = image->code->stubs;
    return 0;
}

/* -ENOMEM. */
static int choose_patches(const struct backend_target *target, struct patched_image *image)
{
    struct live_patch *patch = &image->patch;

    patch->count = target->inlined->place_count;
    patch->out = image->out = calloc(patch->count, sizeof(*image->out));
    patch->varies = image->varies = calloc(patch->count, sizeof(*image->varies));
    if (!image->out || !image->varies)
        return -ENOMEM;
    for (size_t i = 0; target->out && i < patch->count; i++)
        image->out[i] = image->varies[i] = target->out[target->inlined->places[i].function];
    return 0;
}

int inline_make_image(struct inline_backend *backend, struct family *family,
                      const struct backend_target *target, struct patched_image **ret_image,
                      struct error *err)
{
    CLEANUP(cleanup_patched_image) struct patched_image *image = calloc(1, sizeof(*image));
    int r;

    if (!image || choose_patches(target, image))
        return error_no_memory(err);
    image->inlined = target->inlined;
    image->patch.area = family->area;
    image->patch.agent = backend->agent;
    image->patch.waits = family->waits;
    image->patch.filtered = backend->filtered;
    image->patch.near_bytes = agent_near_bytes(target->inlined->stub_bytes);
    image->patch.file = (struct live_file){target->device, target->inode, target->delta};
    r = inline_place_image(backend, target, image, err);
    if (r)
        return r;
    *ret_image = take_pointer(image);
    return 0;
}

void inline_add_image(struct family *family, struct patched_image *image)
{
    struct patched_image **link = family->images ? &family->images->next : &family->images;

    image->next = *link;
    *link = image;
    family->image_count++;
}

int inline_note_image(struct member *member, struct patched_image *image)
{
    if (array_reserve(&member->images, &member->image_capacity, member->image_count + 1))
        return -ENOMEM;
    member->images[member->image_count++] = image;
    return 0;
}

bool inline_has_place(const struct member *member, const struct patched_image *image)
{
    for (size_t i = 0; i < member->image_count; i++)
        if (member->images[i] == image)
            return true;
    return false;
}

/* The image whose head a mapping is, if it is one of the family's. */
static struct patched_image *image_at(const struct family *family, const struct map_line *mapping)
{
    struct patched_image *image = mapping->inode == family->inode && !mapping->offset ? family->images : NULL;

    while (image && image->patch.head != mapping->start)
        image = image->next;
    return image;
}

int inline_inherit_images(struct member *member)
{
    AUTO_MAP_LINES struct map_lines maps = {0};
    struct map_line mapping;
    int r = 0;

    if (member->family->image_count == 1)
        return inline_note_image(member, member->family->images);
    if (map_lines_open(member->pid, &maps))
        return 0; /* it has ended */
    while (!r && map_lines_next(&maps, &mapping)) {
        struct patched_image *image = image_at(member->family, &mapping);

        if (image && !inline_has_place(member, image))
            r = inline_note_image(member, image);
    }
    return r;
}

bool inline_has_image(const struct backend *base, pid_t pid, const struct inline_image *inlined)
{
    const struct inline_backend *backend = inline_of(base);
    const struct member *member = inline_find_member(backend, pid);

    while (member && member->shares)
        member = inline_find_member(backend, member->shares);
    for (size_t i = 0; member && i < member->image_count; i++)
        if (member->images[i]->inlined == inlined)
            return true;
    return false;
}

const struct live_patch **inline_patches_of(const struct member *member)
{
    const struct live_patch **patches = calloc(member->image_count + 1, sizeof(*patches));

    for (size_t i = 0; patches && i < member->image_count; i++)
        patches[i] = &member->images[i]->patch;
    return patches;
}

/* ------------------------------------------------------------------------------------ joining */

/* Whether the library is as it was patched: one that was unloaded, and has come back to the same place, has no
 * patches any more. */
static bool is_in_place(const struct member *member, const struct patched_image *image)
{
    uint8_t now[DISPLACE_JUMP];
    size_t i = 0;

    while (i < image->patch.count && image->varies[i])
        i++;
    return i < image->patch.count &&
           target_memory_read(member->pid, image->patch.patches[i].address, now, sizeof(now)) ==
               sizeof(now) &&
           !memcmp(now, image->patch.patches[i].new, sizeof(now));
}

/* Whether that is what inline_make_image() would make. */
static bool is_place_of(const struct patched_image *image, const struct backend_target *target)
{
    return image->inlined == target->inlined && image->code->order.load_bias == target->load_bias &&
           image->patch.file.device == target->device && image->patch.file.inode == target->inode &&
           image->patch.file.delta == target->delta;
}

/* Patches the image in the process; -EEXIST: there is no room at its place. Of what has failed half way no jump
 * stays. */
static int put_in(struct member *member, struct patched_image *image, struct error *err)
{
    int r = live_patch_join(member->pid, &image->patch, err);

    if (!r && !inline_note_image(member, image))
        return 0;
    if (!r)
        r = error_no_memory(err);
    if (r != -EEXIST && r != -ESTALE && r != -ESRCH)
        inline_take_out_all(member, image);
    return r;
}

/* A place that a process of the family has. 1: this one has it already; -ENOENT: there is none that does for
 * it. */
static int put_in_known(struct member *member, const struct backend_target *target, struct error *err)
{
    for (struct patched_image *image = member->family->images; image; image = image->next) {
        int r;

        if (!is_place_of(image, target))
            continue;
        if (inline_has_place(member, image))
            return is_in_place(member, image) ? 1 : inline_put_in_again(member, image, err);
        r = put_in(member, image, err);
        if (r != -EEXIST)
            return r;
    }
    return -ENOENT;
}

/* Whether records of the family may be of the image. */
static bool is_expected(const struct family *family, const struct inline_image *inlined)
{
    for (const struct patched_image *image = family->images; image; image = image->next)
        if (image->inlined == inlined)
            return true;
    return false;
}

static int put_in_new(struct inline_backend *backend, struct member *member,
                      const struct backend_target *target, struct error *err)
{
    const struct agent_expected expected = {
        .first = 1 + target->first_function,
        .functions = target->inlined->count,
        .has_stub = target->inlined->chosen,
        .has_exits = target->inlined->exact,
    };
    struct family *family = member->family;
    struct patched_image *image = NULL;
    int r;

    if (family->image_count >= IMAGES_MAX)
        return error_say(err, -ENOSPC, "its libraries are loaded at too many places");
    if (!is_expected(family, target->inlined) && agent_reader_expect(family->reader, &expected))
        return error_no_memory(err);
    r = inline_make_image(backend, family, target, &image, err);
    if (!image)
        return r;
    inline_add_image(family, image); /* it stays listed if the next steps fail */
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        r = attempt ? inline_place_image(backend, target, image, err) : 0;
        if (!r)
            r = put_in(member, image, err);
        if (r != -EEXIST)
            break;
    }
    return r;
}

int inline_join(struct inline_backend *backend, struct member *member, const struct backend_target *target,
                struct error *err)
{
    int r;

    if (!target->inode && inline_has_image(&backend->backend, member->pid, target->inlined))
        return 1; /* the program */
    if (member->shares)
        return 1; /* it has its parent's; or it runs another program, whose record is still to come */
    r = put_in_known(member, target, err);
    return r == -ENOENT ? put_in_new(backend, member, target, err) : r;
}
