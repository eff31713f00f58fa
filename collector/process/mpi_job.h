/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The job that an MPI launcher started this process for. */
#ifndef TRACECTL_MPI_JOB_H
#define TRACECTL_MPI_JOB_H

struct error;

/*
 * A name that all processes of the job have, and no other job: from the variables of Slurm, PMIx and Open MPI; of MPICH,
 * whose launcher gives no name, the process that started this one, which is the same for all ranks of a host. In memory
 * from malloc; NULL: no launcher has given this process a rank. -ENOMEM.
 */
int mpi_job_name(char **ret_name, struct error *err);

#endif
