/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/uprobe/probe_links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "collector/uprobe/file_code.h"
#include "collector/uprobe/placement.h"
#include "collector/uprobe/probe_events.h"
#include "collector/uprobe/proxy.h"

#define SWEEP_AFTER 64 /* links */

/* ------------------------------------------------------------------------------------ places */

static int compare_offsets(const void *left, const void *right)
{
    const unsigned long *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

void probe_links_put_in_order(struct former_probes *former)
{
    size_t kept = 0;

    if (former->count)
        qsort(former->offsets, former->count, sizeof(*former->offsets), compare_offsets);
    for (size_t i = 0; i < former->count; i++)
        if (!kept || former->offsets[kept - 1] != former->offsets[i])
            former->offsets[kept++] = former->offsets[i];
    former->count = former->sorted = kept;
}

static struct former_probes *former_of(struct probe_links *links, dev_t device, ino_t inode)
{
    for (size_t i = 0; i < links->file_count; i++)
        if (links->files[i].device == device && links->files[i].inode == inode)
            return &links->files[i];
    if (array_reserve(&links->files, &links->file_capacity, links->file_count + 1))
        return NULL;
    links->files[links->file_count] = (struct former_probes){.device = device, .inode = inode};
    return &links->files[links->file_count++];
}

/* Probes that move between links come again and again: each is kept once. */
static int keep_former(struct probe_links *links, const struct placed_probes *placed)
{
    struct former_probes *former = former_of(links, placed->device, placed->inode);

    if (!former || array_reserve(&former->offsets, &former->capacity, former->count + placed->count))
        return -ENOMEM;
    memcpy(former->offsets + former->count, placed->offsets, placed->count * sizeof(*placed->offsets));
    former->count += placed->count;
    if (former->count > 2 * former->sorted)
        probe_links_put_in_order(former);
    return 0;
}

static int describe(const struct probe_links_kind *kind, const struct probe_sites *sites,
                    struct placed_probes *ret_placed)
{
    unsigned long *offsets = calloc(sites->count, sizeof(*offsets));
    struct stat file = {0};

    if (!offsets)
        return -ENOMEM;
    fstat(sites->file, &file);
    memcpy(offsets, sites->offsets, sites->count * sizeof(*offsets));
    qsort(offsets, sites->count, sizeof(*offsets), compare_offsets);
    *ret_placed = (struct placed_probes){
        .device = file.st_dev,
        .inode = file.st_ino,
        .pid = kind->pid,
        .purpose = kind->purpose,
        .offsets = offsets,
        .count = sites->count,
    };
    return 0;
}

/* ------------------------------------------------------------------------------------ links */

/* One link on `count` places. Returns its descriptor, or a negative errno. */
static int create_link(const struct probe_links_kind *kind, const struct probe_sites *sites)
{
    const struct placement placement = {
        .program = bpf_program__fd(kind->program),
        .session = kind->session,
        .file = sites->file,
        .pid = kind->pid,
        .offsets = sites->offsets,
        .cookies = sites->cookies,
        .count = sites->count,
    };

    return placement_make(&placement);
}

static int keep_link(struct probe_links *links, int fd, const struct probe_links_kind *kind,
                     const struct probe_sites *sites)
{
    struct probe_link link = {.fd = fd, .part = kind->part};

    if (array_reserve(&links->items, &links->capacity, links->count + 1) ||
        describe(kind, sites, &link.placed)) {
        close(fd);
        return -ENOMEM;
    }
    links->items[links->count++] = link;
    links->made++;
    return keep_former(links, &link.placed);
}

/* Attaches all sites in one link. One that the kernel refuses, or that is no code, fails the whole link:
 * halves are tried then, so that it is found in a logarithm of steps. */
static int attach(struct probe_links *links, const struct probe_links_kind *kind,
                  const struct probe_sites *sites, const struct file_code *code)
{
    struct probe_sites first = *sites, second = *sites;
    int fd = file_code_has(code, sites->offsets, sites->count) ? create_link(kind, sites) : -KERNEL_ENOTSUPP;
    int r;

    if (fd >= 0)
        return keep_link(links, fd, kind, sites);
    if (fd != -KERNEL_ENOTSUPP || !sites->refused)
        return fd;
    if (sites->count == 1) {
        sites->refused[0] = true;
        return 0;
    }
    first.count = sites->count / 2;
    second.count -= first.count;
    second.offsets += first.count;
    second.cookies += first.count;
    second.refused += first.count;
    r = attach(links, kind, &first, code);
    return r ? r : attach(links, kind, &second, code);
}

/* The links from `first` on. */
struct last_links {
    struct probe_links *links;
    size_t first;
};

static int close_last_links(void *context)
{
    const struct last_links *last = context;

    for (size_t i = last->links->count; i > last->first; i--)
        closer_close_once(&last->links->items[i - 1].fd);
    return 0;
}

static void close_from(struct probe_links *links, size_t first)
{
    struct last_links last = {links, first};

    while (links->count > first && proxy_do(close_last_links, &last) == -EINTR)
        ; /* it was killed, with the rest still open */
    while (links->count > first)
        free(links->items[--links->count].placed.offsets);
}

int probe_links_attach(struct probe_links *links, const struct probe_links_kind *kind,
                       const struct probe_sites *sites)
{
    size_t before = links->count;
    struct file_code code;
    int r;

    if (!sites->count)
        return 0;
    r = file_code_read(sites->file, &code);
    if (r)
        return r;
    if (links->made >= SWEEP_AFTER) {
        probe_events_sweep();
        links->made = 0;
    }
    r = attach(links, kind, sites, &code);
    file_code_release(&code);
    if (r)
        close_from(links, before);
    return r;
}

void probe_links_close_of(struct probe_links *links, pid_t pid, unsigned part)
{
    size_t kept = 0;

    for (size_t i = 0; i < links->count; i++) {
        const struct probe_link *link = &links->items[i];

        if (pid ? link->placed.pid != pid : link->part != part) {
            links->items[kept++] = *link;
            continue;
        }
        closer_close(&links->closer, link->fd);
        free(link->placed.offsets);
    }
    links->count = kept;
}

void probe_links_close(struct probe_links *links)
{
    close_from(links, 0);
    closer_release(&links->closer);
    if (links->made)
        probe_events_sweep();
    links->made = 0;
}

void probe_links_forget(struct probe_links *links)
{
    while (links->file_count)
        free(links->files[--links->file_count].offsets);
}

void probe_links_release(struct probe_links *links)
{
    probe_links_close(links);
    probe_links_forget(links);
    free(links->files);
    free(links->items);
    *links = (struct probe_links){0};
}
