/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What `tracectl doctor` says: everything that recording needs, tried on this machine and as this user. */
#ifndef TRACECTL_COLLECTOR_DOCTOR_SELF_TEST_H
#define TRACECTL_COLLECTOR_DOCTOR_SELF_TEST_H

#include <stdbool.h>
#include <stddef.h>

#include "collector/cost/costs.h"

struct self_check {
    const char *name;
    bool ok;
    bool optional;      /* recording works without it */
    char detail[480];   /* what was found */
    const char *remedy; /* what to do about it; NULL when ok */
};

#define SELF_CHECKS_AT_MOST 40

struct self_test {
    struct self_check checks[SELF_CHECKS_AT_MOST];
    size_t count;
    struct probe_costs costs;
};

/* `store_folder`: where the store would be written. Takes about two seconds, most of it waiting for probes to
 * go away. Never fails: what does not work is the answer. */
void self_test_run(const char *store_folder, struct self_test *ret_test);

/* Whether everything that is not optional is there. */
bool self_test_can_record(const struct self_test *test);

/* Whether record works without BPF, by ptrace. */
bool self_test_can_trace(const struct self_test *test);

#endif
