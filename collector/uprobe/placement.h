/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Probes of one BPF program on places of one file, by whichever way this kernel has (kernel_features.h). */
#ifndef TRACECTL_COLLECTOR_UPROBE_PLACEMENT_H
#define TRACECTL_COLLECTOR_UPROBE_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bpf_object;

struct placement {
    int program; /* its descriptor */
    bool session;
    int file;
    pid_t pid; /* 0: every process */
    const unsigned long *offsets;
    const uint64_t *cookies; /* NULL: all are 0 */
    size_t count;
};

/* What the kernel answers for an instruction that it does not probe. */
#define KERNEL_ENOTSUPP 524

/* Makes the programs of an object, which is open and not loaded yet, fit the way of this kernel. */
void placement_prepare(struct bpf_object *object);

/* Places all probes, or none: in a process of its own (proxy.h). Returns a descriptor, whose last close takes
 * them away, or a negative errno: -KERNEL_ENOTSUPP when one place has such an instruction, -EOPNOTSUPP when
 * the kernel has no way for this kind of program. */
int placement_make(const struct placement *placement);

#endif
