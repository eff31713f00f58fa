/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/displace/displace_image.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "collector/plan/plan.h"
#include "image/flow/branch_targets.h"
#include "image/flow/flow_image.h"

struct survey {
    struct elf_image *image;
    const struct image_function *functions;
    size_t count;
    struct flow_map *map, *own_map; /* the second one is NULL if the first one is borrowed */
    struct disasm *disasm;
};

static struct displace_site look_at(const struct survey *survey, size_t index)
{
    const struct image_function *function = &survey->functions[index];
    struct displace_site site = {.symbol = plan_symbol_refusal(function)};
    struct displace_subject subject = {.address = function->address};

    if (site.symbol == SITE_OK && function->flags & IMAGE_FUNCTION_SIZE_GUESSED)
        site.symbol = SITE_NO_SIZE; /* how much of the code is the function's is not known */
    if (site.symbol != SITE_OK) {
        site.refusal = DISPLACE_NO_FUNCTION;
        return site;
    }
    subject.code = elf_image_code(survey->image, function->address, &subject.room);
    if (!subject.code) {
        site.refusal = DISPLACE_EMPTY;
        return site;
    }
    if (index + 1 < survey->count && function[1].address - function->address < subject.room)
        subject.room = function[1].address - function->address;
    subject.size = function->size < subject.room ? function->size : subject.room;
    site.refusal = displace_function(survey->disasm, survey->map, &subject, &site.displacement);
    site.address = function->address + site.displacement.offset;
    site.code = subject.code;
    return site;
}

static int prepare(struct survey *survey, struct error *err)
{
    bool all_taken; /* matters for whose calls are all known, not for what the file refers to */
    int r = disasm_new(&survey->disasm, err);

    if (r == 0 && !survey->map)
        r = flow_image_map(survey->image, survey->functions, survey->count, &survey->own_map, &all_taken,
                           err);
    if (r)
        return r;
    if (!survey->map)
        survey->map = survey->own_map;
    branch_targets_mark(survey->map);
    return 0;
}

static void release(struct survey *survey)
{
    disasm_free(survey->disasm);
    flow_map_free(survey->own_map);
}

int displace_image(struct elf_image *image, const struct image_function *functions, size_t count,
                   struct flow_map *map, struct displace_site **ret_sites, struct error *err)
{
    CLEANUP(release)
    struct survey survey = {.image = image, .functions = functions, .count = count, .map = map};
    AUTO_FREE struct displace_site *sites = calloc(count + 1, sizeof(*sites));
    int r;

    if (!sites)
        return error_no_memory(err);
    r = prepare(&survey, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        sites[i] = look_at(&survey, i);
    *ret_sites = take_pointer(sites);
    return 0;
}
