/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to collector/plan/: what is known while a plan is made. */
#ifndef TRACECTL_COLLECTOR_PLAN_PLANNER_H
#define TRACECTL_COLLECTOR_PLAN_PLANNER_H

#include "collector/plan/call_sites.h"
#include "collector/plan/plan.h"
#include "image/flow/flow_map.h"

/* How one function is to be seen. */
struct choice {
    struct site site;
    enum plan_no_return no_return;
    enum plan_no_return
        rule; /* what forbids a return probe wherever the site is; PLAN_RETURN_PROBED: nothing */
    bool is_wanted;
    size_t first_call, calls; /* probed instead of the site, if any, in planner.calls */
};

struct planner {
    struct elf_image *image;
    const struct image_function *functions;
    size_t count;
    const struct plan_options *options;
    struct site_costs costs;
    struct disasm *disasm;
    struct flow_map *map;
    bool all_taken;                /* flow_image_map() */
    enum plan_no_return no_return; /* for the whole image */
    struct choice *choices;        /* one for each function */
    struct call_site *calls;
    size_t call_count, call_capacity;
    struct plan *plan;
    size_t probe_capacity, refusal_capacity;
};

/* Finds the functions whose calls are cheaper to probe than themselves, and changes their choices. -ENOMEM.
 */
int planner_prefer_calls(struct planner *planner);

/* Finds the calls of wanted functions without a stub, and gives them to their choices where all are known.
 * -ENOMEM. */
int planner_find_stubless(struct planner *planner);

#endif
