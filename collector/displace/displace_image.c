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
    struct flow_map *map;
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

static void release(struct survey *survey)
{
    disasm_free(survey->disasm);
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
    r = disasm_new(&survey.disasm, err);
    if (r < 0)
        return r;
    branch_targets_mark(map);
    for (size_t i = 0; i < count; i++)
        sites[i] = look_at(&survey, i);
    *ret_sites = take_pointer(sites);
    return 0;
}
