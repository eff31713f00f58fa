/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/backend/no_file_probes.h"

static int attach_sites(struct backend *backend, const struct probe_sites *sites, pid_t pid,
                        struct error *err)
{
    (void)backend, (void)pid, (void)err;
    for (size_t i = 0; sites->refused && i < sites->count; i++)
        sites->refused[i] = true;
    return 0;
}

static void detach_part(struct backend *backend, unsigned part)
{
    (void)backend, (void)part;
}

static void detach_process(struct backend *backend, pid_t pid)
{
    (void)backend, (void)pid;
}

static unsigned closing(const struct backend *backend)
{
    (void)backend;
    return 0;
}

static struct budget_slot *counts(const struct backend *backend)
{
    (void)backend;
    return NULL;
}

static void relinking(struct backend *backend, bool relinking)
{
    (void)backend, (void)relinking;
}

static int placed(const struct backend *backend, placed_handler handle, void *context)
{
    (void)backend, (void)handle, (void)context;
    return 0;
}

static bool had_probes(const struct backend *backend)
{
    (void)backend;
    return false;
}

static void forget_former(struct backend *backend)
{
    (void)backend;
}

static void touch(struct backend *backend, int file, pid_t pid, const unsigned long *offsets, size_t count)
{
    (void)backend, (void)file, (void)pid, (void)offsets, (void)count;
}

static int detach(struct backend *backend, struct error *err)
{
    (void)backend, (void)err;
    return 0;
}

static const struct backend_operations operations = {
    .name = "none",
    .attach_sites = attach_sites,
    .detach_part = detach_part,
    .detach_process = detach_process,
    .closing = closing,
    .counts = counts,
    .relinking = relinking,
    .placed = placed,
    .former = placed,
    .had_probes = had_probes,
    .forget_former = forget_former,
    .touch = touch,
    .detach = detach,
};

struct backend *no_file_probes(void)
{
    static struct backend none = {.of = &operations};

    return &none;
}
