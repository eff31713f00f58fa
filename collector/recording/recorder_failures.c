/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What fails with one process is not the end of the recording of the others. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "collector/recording/recorder_state.h"

/* Whether a failure may be a matter of one process and its files. The store's failures and lack of memory are
 * everybody's. */
static bool is_its_own(int code)
{
    static const int own[] = {EACCES, EPERM,      EMFILE,  ENFILE,  EREMOTE,      ETIMEDOUT, EBUSY,    EFAULT,
                              EINVAL, EAGAIN,     ENODATA, ENOEXEC, ENOTSUP,      ELOOP,     ENOTCONN, ESTALE,
                              E2BIG,  EOPNOTSUPP, ENODEV,  ENXIO,   ENAMETOOLONG, EOVERFLOW, ENOTDIR};

    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        if (code == -own[i])
            return true;
    return false;
}

static bool is_named(const struct recorder *recorder, pid_t pid)
{
    for (size_t i = 0; i < recorder->excluded_count; i++)
        if (recorder->left_out[i].pid == pid)
            return true;
    return false;
}

/* Once for each process. */
static int name(struct recorder *recorder, pid_t pid, const char *why, struct error *err)
{
    char key[32], *copy;

    if (is_named(recorder, pid))
        return 0;
    copy = strdup(why);
    if (!copy ||
        array_reserve(&recorder->left_out, &recorder->excluded_capacity, recorder->excluded_count + 1)) {
        free(copy);
        return error_no_memory(err);
    }
    recorder->left_out[recorder->excluded_count++] = (struct recorder_excluded){pid, copy};
    snprintf(key, sizeof(key), "not recorded:%d", (int)pid);
    return trace_writer_tag(recorder->writer, key, why, err);
}

int recorder_pass_over(struct recorder *recorder, pid_t pid, int code, const struct error *why,
                       struct error *err)
{
    int r;

    if (!code || recorder_is_gone(code))
        return 0;
    if (!is_its_own(code)) {
        if (err)
            *err = *why;
        return code;
    }
    r = name(recorder, pid, why->message, err);
    return r ? r
             : trace_writer_loss(recorder->writer, clock_ns(CLOCK_REALTIME), 0,
                                 "a process could not be probed", err);
}

const struct recorder_excluded *recorder_excluded(const struct recorder *recorder, size_t *ret_count)
{
    *ret_count = recorder->excluded_count;
    return recorder->left_out;
}

void recorder_failures_release(struct recorder *recorder)
{
    for (size_t i = 0; i < recorder->excluded_count; i++)
        free(recorder->left_out[i].why);
    free(recorder->left_out);
}
