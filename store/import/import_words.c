/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The words of `.u16` files: checked, and appended to a thread's stream. Files are read in pieces, so memory
 * does not grow with their length. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/foreign_file.h"
#include "store/import/import_plan.h"

#define FLUSH_BYTES (8u << 20) /* of input between two commits: bounds what the writer holds */

/* ------------------------------------------------------------------------------------------------ checking
 */

static int check_word(struct u16_check *check, uint32_t word, const struct u16_names *names, const char *path,
                      struct error *err)
{
    uint64_t offset = check->offset - 2;

    if (word && names && !names->names[word])
        return error_say(err, -EBADMSG,
                         "reading %s: at offset %llu function %u, which the .info file does not name", path,
                         (unsigned long long)offset, word);
    return 0;
}

int u16_check_bytes(struct u16_check *check, const uint8_t *bytes, size_t size, const struct u16_names *names,
                    const char *path, struct error *err)
{
    for (size_t i = 0; i < size; i++) {
        int r;

        check->offset++;
        if (!check->half) {
            check->low = bytes[i];
            check->half = true;
            continue;
        }
        check->half = false;
        r = check_word(check, check->low | (uint32_t)bytes[i] << 8, names, path, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int u16_check_end(const struct u16_check *check, const char *path, struct error *err)
{
    if (check->half)
        return error_say(
            err, -EBADMSG,
            "reading %s: half a word at offset %llu (words have two bytes: the file was cut off?)", path,
            (unsigned long long)check->offset - 1);
    return 0;
}

/* ------------------------------------------------------------------------------------------------- reading
 */

/* Hands the file to `take` in pieces. */
static int read_pieces(const char *path, int (*take)(void *context, const uint8_t *bytes, size_t size),
                       void *context, struct error *err)
{
    AUTO_CLOSE int fd = -1;
    AUTO_FREE uint8_t *buffer = malloc(1 << 18);
    int opened = foreign_file_read(path, "opening", &fd, err);

    if (opened < 0)
        return opened;
    if (!buffer)
        return error_no_memory(err);
    for (;;) {
        ssize_t got = read(fd, buffer, 1 << 18);
        int r;

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set(err, -errno, NULL, "reading %s", path);
        if (got == 0)
            return 0;
        r = take(context, buffer, (size_t)got);
        if (r < 0)
            return r;
    }
}

/* A trace that begins inside of calls, as a forked child's does, has returns whose calls it does not have. */
static int append_word(struct u16_pass *pass, uint32_t word)
{
    int r = word && !pass->ids[word] ? pass->know(pass->context, word) : 0;

    if (r < 0)
        return r;
    if (!word && !pass->depth)
        return thread_writer_lost_by_kind(pass->thread, clock_ns(CLOCK_REALTIME), 1, 1,
                                          "a return without its call", pass->err);
    pass->depth += word ? 1 : (uint64_t)-1;
    r = word ? thread_writer_call(pass->thread, pass->ids[word]) : thread_writer_return(pass->thread);
    return r < 0 ? error_set(pass->err, r, NULL, "storing %s", pass->path) : 0;
}

static int append_words(struct u16_pass *pass, const uint8_t *bytes, size_t size)
{
    struct u16_check check = pass->check; /* for the word that lies across two pieces */

    for (size_t i = 0; i < size; i++) {
        int r;

        if (!check.half) {
            check.low = bytes[i];
            check.half = true;
            continue;
        }
        check.half = false;
        r = append_word(pass, check.low | (uint32_t)bytes[i] << 8);
        if (r < 0)
            return r;
    }
    return 0;
}

static int take_piece(void *context, const uint8_t *bytes, size_t size)
{
    struct u16_pass *pass = context;
    struct u16_check before = pass->check, after = before;
    int r = u16_check_bytes(&after, bytes, size, pass->names, pass->path, pass->err);

    if (r == 0 && pass->thread)
        r = append_words(pass, bytes, size);
    pass->check = after;
    if (r < 0 || !pass->thread)
        return r;
    pass->unflushed += size;
    if (pass->unflushed < FLUSH_BYTES)
        return 0;
    pass->unflushed = 0;
    return trace_writer_flush(pass->writer, clock_ns(CLOCK_REALTIME), pass->err);
}

int u16_pass_file(const struct u16_plan *plan, const struct u16_file *file, struct u16_pass *pass)
{
    AUTO_FREE char *path = NULL;
    int r;

    if (asprintf(&path, "%s/%s", plan->dir, file->name) < 0)
        return error_no_memory(pass->err);
    pass->path = path;
    pass->check = (struct u16_check){0};
    r = read_pieces(path, take_piece, pass, pass->err);
    if (r == 0)
        r = u16_check_end(&pass->check, path, pass->err);
    pass->path = NULL;
    return r;
}
