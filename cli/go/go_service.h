/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* go check -p: the goroutines of services that keep running. */
#ifndef TRACECTL_CLI_GO_GO_SERVICE_H
#define TRACECTL_CLI_GO_GO_SERVICE_H

#include <argp.h>
#include <jansson.h>
#include <stdio.h>

#include "analyzer/go/groups.h"
#include "analyzer/go/places.h"
#include "cli/common/pid_list.h"
#include "collector/recording/recorder.h"
#include "store/streams/go_events.h"

struct go_service_options {
    const char *name; /* of the run; NULL: made from its number */
    struct pid_list pids;
    uint64_t duration_ns; /* 0: until a signal comes */
    enum go_detail detail;
    double budget; /* share of the service's own CPU time; 0: no limit */
};

/* "--pid", "--duration", "--detail" and "--budget"; state->input of the parser is a struct go_service_options
 * *. */
extern const struct argp go_service_argp;
void go_service_defaults(struct go_service_options *options);
void go_service_options_release(struct go_service_options *options);

/* Records, groups and prints. Returns the exit status: 1 for a leak, a crash, a global deadlock. */
int go_service_check(const struct go_service_options *options);

/* -------------------------------------------------------------------- between its files */

/* One process, at the end of the observed time. */
struct go_service {
    const struct go_program *program;
    struct go_place_source places;
    struct go_groups *groups;
    struct go_grouping grouping;
    uint64_t from_ns, until_ns; /* the observed time */
    enum go_detail wanted;
    bool ended;      /* the process has, meanwhile */
    int exit_status; /* then: 0 to 255, or 128 + signal; -1: not known */
};

/* "none", "grows", "still", "leak" */
const char *go_suspicion_name(enum go_suspicion suspicion);
/* Of a function or a site; empty when it is not known. */
struct go_place go_service_place(const struct go_service *service, uint32_t function_id);
/* The runtime's word for what a group waits for, "" when there is none. */
const char *go_service_reason(const struct go_service *service, const struct go_group *group);

void go_service_text(FILE *out, const char *verdict, const struct go_service *services, size_t count);
/* The document without "run" and "name". */
json_t *go_service_json(const char *verdict, const struct go_service *services, size_t count);

#endif
