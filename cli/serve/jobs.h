/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Answers that are made from the store: each by a process of its own, `tracectl serve --print TARGET`.
 *
 * A few run at a time; the same question asked by many at once is answered once; answers are kept while the
 * store says the same. A process that takes too long, or that nobody waits for any more, is killed, and what
 * a damaged or hostile store does to it does nothing to the server or to the other answers.
 */
#ifndef TRACECTL_CLI_SERVE_JOBS_H
#define TRACECTL_CLI_SERVE_JOBS_H

#include <stddef.h>
#include <stdint.h>

struct error;
struct jobs;
struct MHD_Connection;

enum {
    JOBS_AT_ONCE = 2,
    JOBS_WAITING_MAX = 256,     /* different questions; further ones are refused */
    JOBS_SECONDS = 30,          /* that one answer may take */
    JOBS_KEPT_SECONDS = 60,     /* that an answer is kept at most */
    JOBS_ANSWER_MAX = 32 << 20, /* bytes */
    JOBS_KEPT_MAX = 64 << 20,   /* bytes of all that are kept */
};

/* What a process ends with, beside the answer that it has written. */
enum jobs_exit { JOBS_OK = 0, JOBS_NOT_FOUND = 10, JOBS_WRONG = 11, JOBS_FAILED = 12 };

/* An answer, or a question that is not answered yet. */
struct job;

struct jobs_counts {
    uint64_t asked, kept, run, failed, killed;
};

/* `store`: its path. Free with jobs_free, after which all that wait are answered with 503. */
int jobs_new(const char *store, struct jobs **ret_jobs, struct error *err);
/* Kills what runs and answers all; jobs_ask answers 503 from now on. */
void jobs_stop(struct jobs *jobs);
void jobs_free(struct jobs *jobs);

/* Asks. `stamp` is what the answer depends on beside the target. The job is a reference, for job_release.
 * While job_status() is 0 the connection is suspended, and is resumed with the answer. NULL: no memory. */
struct job *jobs_ask(struct jobs *jobs, const char *target, uint64_t stamp,
                     struct MHD_Connection *connection);
void job_release(struct job *job);

/* 0: not answered yet. */
unsigned job_status(const struct job *job);
/* Valid while the reference is held. Empty where the process said nothing. */
const char *job_body(const struct job *job, size_t *ret_size);
/* The sentence for a status that is not 200, where the body is empty. */
const char *job_reason(const struct job *job);

struct jobs_counts jobs_counts(struct jobs *jobs);

#endif
