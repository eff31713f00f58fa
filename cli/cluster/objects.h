/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What lattice, jsm and cluster share: the objects of a run, its threads or processes, with their attributes.
 */
#ifndef TRACECTL_CLI_CLUSTER_OBJECTS_H
#define TRACECTL_CLI_CLUSTER_OBJECTS_H

#include <argp.h>

#include "analyzer/cluster/attributes.h"
#include "cli/analysis/loops.h"

struct objects_arguments {
    struct loops_arguments loops;
    const char *run;
    struct attribute_kind kind; /* set by the parser when it begins: sing.noFreq */
    bool processes;
};

/* The argument RUN, which must be there, --attributes and --processes, and all options of cli_loops_argp and
 * cli_common_argp: the one child of a subcommand's argp; its input is a struct objects_arguments. */
extern const struct argp_child cli_objects_children[];

struct objects {
    size_t count;
    char **labels; /* "P.T", or "P" of processes */
    struct attribute_set *sets;
    struct attribute_table table;
    bool processes;
};

void cli_objects_release(struct objects *objects);

/* Reads the run and its objects. Fails as cli_loops_read does. Release both also after a failure. */
int cli_objects_read(const struct objects_arguments *arguments, struct loops_input *ret_input,
                     struct objects *ret_objects, struct error *err);

/* "threads" or "processes": what the objects are, and their key in JSON. */
const char *cli_objects_key(const struct objects *objects);
json_t *cli_objects_labels(const struct objects *objects);

/* What is unknown of the run: in JSON as nlr has it; as text a line for how complete it is, for each
 * thread that lost events and for each thing that the run did not see. */
json_t *cli_objects_json_unknown(const struct run_loops *run);
void cli_objects_print_unknown(const struct loops_input *input);

/* {"entries": ["MPI_Init", {"loop": "L0"}], "frequency": 1}; "log10" in place of "frequency" when it is that.
 */
json_t *cli_attribute_json(const struct loop_summary *summary, const struct attribute *attribute);

#endif
