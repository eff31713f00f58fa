/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Places in a file that get probes. */
#ifndef TRACECTL_COLLECTOR_BACKEND_PROBE_SITES_H
#define TRACECTL_COLLECTOR_BACKEND_PROBE_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parts that no other probes have: those of a budget from here on, and all of an image. */
#define PROBE_PARTS 0x10000u
#define PROBE_IMAGE_PART(number) (0x80000000u + (number))

/* What probes are for. */
enum probe_purpose { PROBE_CALLS, PROBE_GOROUTINES, PROBE_SYNC, PROBE_CLAIMS, PROBE_GATES, PROBE_LINKER };

struct probe_sites {
    int file;                     /* open, of the very file that processes have mapped; borrowed */
    const char *name;             /* of the file, for messages */
    const unsigned long *offsets; /* in the file */
    const uint64_t *cookies;      /* an index in the low half and the COOKIE_ flags of bpf/wire.h */
    size_t count;
    unsigned part; /* by which these probes can be taken away, in all processes; 0: they stay */
    bool *
        refused; /* `count` answers, false before: no probe can stand there, or no instruction begins there */
};

#endif
