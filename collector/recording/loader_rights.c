/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes that change their rights: bpf/rights.h. */
#include "base/array.h"
#include "base/cleanup.h"
#include "collector/recording/loader_state.h"
#include "collector/sync/targets.h"

/* Before they have done anything. */
#define CHANGES(function) \
    { \
        .name = (function), .phase = SYNC_AT \
    }

static const struct sync_function_spec changers[] = {
    CHANGES("setuid"),    CHANGES("seteuid"),    CHANGES("setreuid"), CHANGES("setresuid"),
    CHANGES("setgid"),    CHANGES("setegid"),    CHANGES("setregid"), CHANGES("setresgid"),
    CHANGES("setgroups"), CHANGES("initgroups"), CHANGES("setfsuid"), CHANGES("setfsgid"),
    CHANGES("capset"),    CHANGES("unshare"),    CHANGES("setns"),
};

/* In all processes: one that forks may do so before its child could be given probes of its own. */
int loader_watch_rights(struct loader *loader, struct traced_image *image, struct error *err)
{
    CLEANUP(sync_targets_release) struct sync_targets targets = {0};
    struct probe_sites sites = {.file = elf_image_fd(image->elf), .name = image->path};
    int r;

    if (image->tells_rights)
        return 0;
    image->tells_rights = true;
    r = sync_targets_find(image->elf, changers, ARRAY_SIZE(changers), NULL, &targets, err);
    if (r || !targets.count)
        return r;
    sites.offsets = targets.offsets;
    sites.cookies = targets.cookies;
    sites.count = targets.count;
    sites.refused = targets.refused;
    return loader->options.source->of->watch_rights(loader->options.source, &sites, err);
}
