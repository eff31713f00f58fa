/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's probes as the backend holds them: links, each with its places in one file. What was
 * placed once is kept in mind until the end, so that it can be looked for in processes afterwards.
 */
#ifndef TRACECTL_COLLECTOR_UPROBE_PROBE_LINKS_H
#define TRACECTL_COLLECTOR_UPROBE_PROBE_LINKS_H

#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/uprobe/closer.h"
#include "collector/uprobe/uprobe.h"

struct probe_link {
    int fd;
    unsigned part; /* probe_sites.part */
    struct placed_probes placed;
};

/* The places of a file that had probes at any time: ascending up to `sorted`, then as they came. */
struct former_probes {
    dev_t device;
    ino_t inode;
    unsigned long *offsets;
    size_t count, capacity, sorted;
};

/* All zero has none. */
struct probe_links {
    struct probe_link *items;
    size_t count, capacity;
    struct former_probes *files;
    size_t file_count, file_capacity;
    struct closer closer;
    unsigned made; /* links, since definitions of events were swept */
};

/* What is attached, and how. */
struct probe_links_kind {
    const struct bpf_program *program;
    bool session; /* it is one for calls and returns */
    pid_t pid;    /* 0: every process */
    unsigned part;
    enum probe_purpose purpose;
};

/* Attaches all sites, or none. What the kernel refuses is marked in `sites->refused` and left out; with
 * `refused` NULL that is a failure. Returns 0 or a negative errno. */
int probe_links_attach(struct probe_links *links, const struct probe_links_kind *kind,
                       const struct probe_sites *sites);

/* Closes the links of a process, or (`pid` 0) those of a part, behind the caller's back. */
void probe_links_close_of(struct probe_links *links, pid_t pid, unsigned part);

/* Closes all links, and waits until these and all that were closed before are gone. */
void probe_links_close(struct probe_links *links);

/* The places of a file that had probes: ascending, each once. */
void probe_links_put_in_order(struct former_probes *former);

/* Nothing had probes before from now on. */
void probe_links_forget(struct probe_links *links);

/* Closes all, and frees what is held. */
void probe_links_release(struct probe_links *links);

#endif
