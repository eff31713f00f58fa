/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/process/mpi_job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "collector/process/process.h"
#include "store/db/store.h"

/* Of MPICH's mpiexec: "BOOT_ID PID START_TICKS" of the parent. */
static int name_of_parent(char **ret_name)
{
    AUTO_FREE char *identity = NULL;
    int code = recorder_identity(getppid(), &identity);

    if (!code && asprintf(ret_name, "mpiexec %s", identity) < 0)
        code = -ENOMEM;
    return code;
}

int mpi_job_name(char **ret_name, struct error *err)
{
    const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID"),
               *pmix = getenv("PMIX_NAMESPACE"), *open_mpi = getenv("OMPI_MCA_orte_hnp_uri"),
               *pmi = getenv("PMI_JOBID");
    int code = 0;

    *ret_name = NULL;
    if (process_rank(getpid()) < 0)
        return 0;
    if (job && step)
        code = asprintf(ret_name, "slurm %s.%s", job, step);
    else if (pmix)
        code = asprintf(ret_name, "pmix %s", pmix);
    else if (open_mpi)
        code = asprintf(ret_name, "open-mpi %s", open_mpi);
    else if (pmi)
        code = asprintf(ret_name, "pmi %s", pmi);
    else
        code = name_of_parent(ret_name);
    if (code >= 0)
        return 0;
    *ret_name = NULL;
    return error_no_memory(err);
}
