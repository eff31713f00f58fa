/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/daemon/service_target.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

void service_target_release(struct service_target *target)
{
    free(target->name);
    free(target->process);
    free(target->path);
    free(target->cgroup);
    free(target->unit);
    free(target->container);
    free(target->user);
    free(target->functions);
    free(target->exclude);
    free(target->flight_on);
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

bool service_target_same(const struct service_target *a, const struct service_target *b)
{
    return a && same_text(a->name, b->name) && same_text(a->process, b->process) &&
           same_text(a->path, b->path) && same_text(a->cgroup, b->cgroup) && same_text(a->unit, b->unit) &&
           same_text(a->container, b->container) && same_text(a->user, b->user) && a->uid == b->uid &&
           same_text(a->functions, b->functions) && same_text(a->exclude, b->exclude) &&
           a->budget == b->budget && a->rotate_ns == b->rotate_ns && a->flight_ns == b->flight_ns &&
           a->flight_bytes == b->flight_bytes && same_text(a->flight_on, b->flight_on);
}

int service_target_triggers(const struct service_target *target, struct flight_trigger **ret_triggers,
                            size_t *ret_count, struct error *err)
{
    AUTO_FREE char *text = strdup(target->flight_on ? target->flight_on : "crash");
    struct flight_trigger *triggers = calloc(text ? strlen(text) / 2 + 1 : 1, sizeof(*triggers));
    char *rest = NULL;
    size_t count = 0;
    int r = text && triggers ? 0 : error_no_memory(err);

    for (char *word = r ? NULL : strtok_r(text, " \t", &rest); !r && word;
         word = strtok_r(NULL, " \t", &rest))
        r = flight_trigger_parse(word, &triggers[count++], err);
    if (!r) {
        *ret_triggers = triggers;
        *ret_count = count;
        return 0;
    }
    while (triggers && count)
        flight_trigger_release(&triggers[--count]);
    free(triggers);
    return r;
}
