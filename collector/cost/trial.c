/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/cost/trial.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "bpf/self_test.skel.h"
#include "collector/uprobe/bpf_messages.h"
#include "collector/uprobe/kernel_features.h"
#include "collector/uprobe/placement.h"

#define FUNCTIONS_AT_MOST 64

int trial_load(struct trial *trial, const char *name, enum trial_kind kind)
{
    struct bpf_program *program;

    *trial = (struct trial){.probe = -1};
    bpf_messages_begin();
    trial->bpf = self_test_bpf__open();
    if (!trial->bpf)
        return -errno;
    bpf_object__for_each_program(program, trial->bpf->obj)
    {
        bool chosen = !strcmp(bpf_program__name(program), name);

        bpf_program__set_autoload(program, chosen);
        if (chosen)
            trial->program = program;
    }
    if (!trial->program)
        return -ENOENT;
    if (kind == TRIAL_SESSION)
        bpf_program__set_expected_attach_type(trial->program, (enum bpf_attach_type)ATTACH_UPROBE_SESSION);
    placement_prepare(trial->bpf->obj);
    trial->bpf->rodata->probes_are_events = kernel_probe_way() == PROBE_WAY_EVENTS;
    bpf_map__set_autocreate(trial->bpf->maps.try_ring, !strcmp(name, "write_ring"));
    return self_test_bpf__load(trial->bpf);
}

bool trial_is_session(const struct trial *trial)
{
    return bpf_program__get_expected_attach_type(trial->program) ==
           (enum bpf_attach_type)ATTACH_UPROBE_SESSION;
}

int trial_probe(struct trial *trial, const self_test_function *functions, const uint64_t *cookies,
                size_t count, pid_t pid)
{
    AUTO_CLOSE int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct placement placement = {
        .program = bpf_program__fd(trial->program),
        .session = trial_is_session(trial),
        .file = file,
        .pid = pid,
        .cookies = cookies,
        .count = count,
    };
    unsigned long offsets[FUNCTIONS_AT_MOST];
    int r = count > FUNCTIONS_AT_MOST ? -E2BIG : 0;

    if (file < 0)
        return -errno;
    for (size_t i = 0; !r && i < count; i++)
        r = self_test_site_offset(functions[i], &offsets[i]);
    if (r)
        return r;
    placement.offsets = offsets;
    trial->probe = placement_make(&placement);
    return trial->probe < 0 ? trial->probe : 0;
}

int trial_begin(struct trial *trial, const char *name, enum trial_kind kind, enum self_test_form form)
{
    self_test_function function = self_test_site(form, COPY_TRIAL);
    int r = trial_load(trial, name, kind);

    return r ? r : trial_probe(trial, &function, NULL, 1, 0);
}

int trial_attach(struct trial *trial)
{
    trial->link = bpf_program__attach(trial->program);
    return trial->link ? 0 : -errno;
}

void trial_failure(const struct trial *trial, int r, char *ret_text, size_t size)
{
    bool loaded = trial->program && bpf_program__fd(trial->program) >= 0;

    if (r == -EOPNOTSUPP)
        snprintf(ret_text, size, "not tried: this kernel has no %s",
                 trial_is_session(trial) ? "sessions" : probe_way_name(PROBE_WAY_NONE));
    else if (!loaded && r != -EPERM && *bpf_messages_reason())
        snprintf(ret_text, size, "cannot load %s", bpf_messages_reason());
    else
        snprintf(ret_text, size, "cannot %s: %s", loaded ? "attach" : "load",
                 r == -KERNEL_ENOTSUPP ? "not supported" : strerror(-r));
}

void trial_end(struct trial *trial)
{
    if (trial->probe >= 0)
        close(take_fd(&trial->probe));
    bpf_link__destroy(trial->link);
    self_test_bpf__destroy(trial->bpf);
    *trial = (struct trial){.probe = -1};
}
