/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/record/record_job.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cli/common/command.h"
#include "collector/process/mpi_job.h"

#define JOB_TAG TRACESTORE_JOB_TAG "="

bool record_job_is_named_by(const char *tag)
{
    return !strncmp(tag, JOB_TAG, strlen(JOB_TAG));
}

int record_job_tag(struct recorder *recorder, const struct record_arguments *arguments, struct error *err)
{
    AUTO_FREE char *job = NULL;
    int r;

    for (size_t i = 0; i < arguments->tag_count; i++)
        if (record_job_is_named_by(arguments->tags[i]))
            return recorder_tag(recorder, TRACESTORE_JOB_PART_TAG, arguments->tags[i] + strlen(JOB_TAG), err);
    r = mpi_job_name(&job, err);
    return r || !job ? r : recorder_tag(recorder, TRACESTORE_JOB_PART_TAG, job, err);
}

int record_job_join(struct tracestore *store, struct tracestore_run *run, struct error *err)
{
    struct trace_joined joined;
    int r = tracestore_join_job(store, run->run_id, &joined, err);

    if (!r)
        run->run_id = joined.run_id;
    return r;
}
