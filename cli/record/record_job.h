/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A recording that is a part of an MPI job: mpiexec -n 4 tracectl record -- ./solver. The recorders of a job write runs of
 * their own; each joins those that have ended when it ends, so that the last one leaves one run. */
#ifndef TRACECTL_RECORD_JOB_H
#define TRACECTL_RECORD_JOB_H

#include "cli/record/record_arguments.h"
#include "collector/recording/recorder.h"

/* Whether an option --tag says which job the run belongs to: job=NAME. */
bool record_job_is_named_by(const char *tag);

/* The run becomes a part of the job that --tag names, or else of the one that a launcher started this recorder for. */
int record_job_tag(struct recorder *recorder, const struct record_arguments *arguments, struct error *err);

/* The run, which has ended, joins the others of its job; `run->run_id` becomes that of the joined run. Does nothing where
 * the run is of no job. */
int record_job_join(struct tracestore *store, struct tracestore_run *run, struct error *err);

#endif
