/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "collector/go/program.h"
#include "collector/images/image_table.h"

/* Targets as the kernel wants them. */
struct spelled {
    size_t *targets; /* which these are */
    unsigned long *offsets;
    uint64_t *cookies;
    bool *refused;
    struct go_probe *probes;
    size_t count;
};

static void spelled_release(struct spelled *spelled)
{
    free(spelled->targets);
    free(spelled->offsets);
    free(spelled->cookies);
    free(spelled->refused);
    free(spelled->probes);
}

static int spell_target(const struct traced_image *image, size_t target, struct spelled *spelled,
                        struct error *err)
{
    const struct go_target *item = &go_program_targets(image->go)->items[target];
    size_t i = spelled->count;
    uint64_t offset;

    if (elf_image_file_offset(image->elf, item->address, &offset))
        return error_say(err, -ENODATA, "%s: its code is not in the file", image->path);
    spelled->targets[i] = target;
    spelled->offsets[i] = offset;
    spelled->cookies[i] = go_program_first_probe(image->go) + target;
    spelled->probes[i] = item->probe;
    spelled->probes[i].program = go_program_number(image->go);
    spelled->count++;
    return 0;
}

/* Those that are probed from `detail` on. */
static int spell(const struct traced_image *image, enum go_detail detail, struct spelled *spelled,
                 struct error *err)
{
    const struct go_targets *targets = go_program_targets(image->go);
    int r = 0;

    spelled->targets = calloc(targets->count + 1, sizeof(*spelled->targets));
    spelled->offsets = calloc(targets->count + 1, sizeof(*spelled->offsets));
    spelled->cookies = calloc(targets->count + 1, sizeof(*spelled->cookies));
    spelled->refused = calloc(targets->count + 1, sizeof(*spelled->refused));
    spelled->probes = calloc(targets->count + 1, sizeof(*spelled->probes));
    if (!spelled->targets || !spelled->offsets || !spelled->cookies || !spelled->refused || !spelled->probes)
        return error_no_memory(err), -ENOMEM;
    for (size_t i = 0; !r && i < targets->count; i++)
        if (targets->items[i].detail == detail)
            r = spell_target(image, i, spelled, err);
    return r;
}

static unsigned part_of(const struct traced_image *image, enum go_detail detail)
{
    return (unsigned)go_program_number(image->go) * GO_DETAILS + detail;
}

static int attach_part(struct uprobe_backend *backend, struct traced_image *image, enum go_detail detail,
                       struct error *err)
{
    CLEANUP(spelled_release) struct spelled spelled = {0};
    const struct go_layout *layout = go_program_layout(image->go);
    struct uprobe_go go = {
        .program = go_program_number(image->go),
        .fields = {.g_goid = (uint32_t)layout->offsets[GO_G_GOID],
                   .g_m = (uint32_t)layout->offsets[GO_G_M],
                   .m_curg = (uint32_t)layout->offsets[GO_M_CURG]},
    };
    int r = spell(image, detail, &spelled, err);

    go.sites = (struct probe_sites){.file = elf_image_fd(image->elf),
                                    .name = image->path,
                                    .offsets = spelled.offsets,
                                    .cookies = spelled.cookies,
                                    .count = spelled.count,
                                    .part = part_of(image, detail),
                                    .refused = spelled.refused};
    go.probes = spelled.probes;
    if (!r)
        r = uprobe_backend_attach_go(backend, &go, err);
    for (size_t i = 0; !r && i < spelled.count; i++)
        image->go_refused_by_kernel[spelled.targets[i]] |= spelled.refused[i];
    return r;
}

int image_table_attach_go(struct uprobe_backend *backend, struct traced_image *image, enum go_detail detail,
                          struct error *err)
{
    struct backend *calls = uprobe_calls(backend);
    int r = 0;

    if (!image->go_refused_by_kernel)
        image->go_refused_by_kernel =
            calloc(go_program_targets(image->go)->count + 1, sizeof(*image->go_refused_by_kernel));
    if (!image->go_refused_by_kernel)
        return error_no_memory(err), -ENOMEM;
    while (image->go_attached > detail)
        calls->of->detach_part(calls, part_of(image, image->go_attached--));
    while (!r && image->go_attached < detail) {
        r = attach_part(backend, image, image->go_attached + 1, err);
        image->go_attached += !r;
    }
    return r;
}
