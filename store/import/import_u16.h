/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Import of call traces from elsewhere: a directory with one `.u16` file per thread.
 *
 * A `.u16` file is a sequence of little-endian 16-bit words: n > 0 is a call of function n, 0 a return. What
 * is still open at the end of the file never came back.
 *
 * Threads. `P.T.u16` (two numbers) is thread P.T. `NAME.PID.TID.u16` belongs to process PID: such processes
 * are numbered in the order of their names and PIDs, their threads in the order of TID, the main thread (TID
 * = PID) first. Any other file is a process of its own with one thread, in file-name order. Numbers that a
 * P.T file has taken are not given to the others.
 *
 * Names come from `.info` files with one `ID NAME` line for each function. For `A.B.C.u16` these are tried:
 * `A.B.C.info`, `A.B.info`, `A.info`, `.info`, and then the directory's only `*.info` file. Without any .info
 * file in the directory function n is called `function_n`.
 */
#ifndef TRACESTORE_IMPORT_U16_H
#define TRACESTORE_IMPORT_U16_H

#include <stddef.h>
#include <stdint.h>

#include "store/api/tracestore.h"

struct u16_plan;

/* Finds the files of `dir`, reads the names and checks every word, so that a later u16_plan_write does not
 * meet damage. Fails with -ENOENT (no directory, or no .u16 file in it) and -EBADMSG (damaged: the message
 * names the file and the offset). Free with u16_plan_free. */
int u16_plan_new(const char *dir, struct u16_plan **ret_plan, struct error *err);
/* Accepts NULL. */
void u16_plan_free(struct u16_plan *plan);

/* Makes a run called `name` (NULL: after the directory) of what was planned. `demangle` (NULL: none) returns
 * a name for people in memory from malloc, or NULL. On failure nothing of the run stays in the store. */
int u16_plan_write(struct u16_plan *plan, struct tracestore *store, const char *name,
                   char *(*demangle)(const char *name), int64_t *ret_run_id, struct error *err);

/* The parts that read untrusted bytes, for the fuzzer and the tests; `path` is for messages. */

struct u16_names {
    char *names[65536]; /* by id, NULL: not named */
    size_t count;
};

/* Parses the text of an .info file. Fails with -EBADMSG and the line's number. */
int u16_names_parse(const char *text, size_t size, const char *path, struct u16_names **ret_names,
                    struct error *err);
void u16_names_free(struct u16_names *names);

/* Checks a stream piece by piece; zero-initialised at the start of a file. */
struct u16_check {
    uint64_t offset; /* bytes seen */
    bool half;       /* a word's first byte was seen */
    uint8_t low;
};

/* Takes `size` bytes more. `names` NULL: every id is known. */
int u16_check_bytes(struct u16_check *check, const uint8_t *bytes, size_t size, const struct u16_names *names,
                    const char *path, struct error *err);
int u16_check_end(const struct u16_check *check, const char *path, struct error *err);

#endif
