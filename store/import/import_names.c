/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of functions: `.info` files. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/foreign_file.h"
#include "store/import/import_plan.h"

#define INFO_LIMIT (64u << 20) /* bytes of an .info file: 65,535 names of a kilobyte */

DEFINE_CLEANUP(cleanup_names, struct u16_names *, u16_names_free)

void u16_names_free(struct u16_names *names)
{
    if (!names)
        return;
    for (size_t i = 0; i < U16_WORDS; i++)
        free(names->names[i]);
    free(names);
}

/* Bytes of the UTF-8 sequence at `text`, 0 when it is none. */
static size_t utf8_length(const unsigned char *text, size_t size)
{
    size_t length = text[0] < 0x80 ? 1 : text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    uint32_t code = length == 1 ? text[0] : text[0] & (0x7fu >> length);
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};

    if ((text[0] >= 0x80 && text[0] < 0xc2) || text[0] > 0xf4 || length > size)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3fu);
    }
    if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return 0;
    return length;
}

static bool is_text(const char *text, size_t size)
{
    for (size_t at = 0, length; at < size; at += length) {
        length = utf8_length((const unsigned char *)text + at, size - at);
        if (!length || !text[at])
            return false;
    }
    return true;
}

static int parse_info_line(const char *line, size_t size, struct u16_names *names, const char **ret_problem)
{
    uint32_t id = 0;
    size_t at = 0;
    char *name;

    while (size && isspace((unsigned char)line[size - 1]))
        size--;
    if (!size)
        return 0;
    for (; at < size && isdigit((unsigned char)line[at]) && id < U16_WORDS; at++)
        id = id * 10 + (uint32_t)(line[at] - '0');
    *ret_problem = "is not 'ID NAME' with an ID from 1 to 65535";
    if (!at || !id || id >= U16_WORDS || at == size || !isblank((unsigned char)line[at]))
        return -EBADMSG;
    while (isblank((unsigned char)line[at]))
        at++;
    *ret_problem = "is not UTF-8 text";
    if (!is_text(line + at, size - at))
        return -EBADMSG;
    *ret_problem = "names an ID a second time";
    if (names->names[id])
        return strlen(names->names[id]) == size - at && !memcmp(names->names[id], line + at, size - at)
                   ? 0
                   : -EBADMSG;
    name = strndup(line + at, size - at);
    if (!name)
        return -ENOMEM;
    names->names[id] = name;
    names->count++;
    return 0;
}

int u16_names_parse(const char *text, size_t size, const char *path, struct u16_names **ret_names,
                    struct error *err)
{
    CLEANUP(cleanup_names) struct u16_names *names = calloc(1, sizeof(*names));
    unsigned long number = 1;

    if (!names)
        return error_no_memory(err);
    for (size_t at = 0; at < size; number++) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end ? (size_t)(end - text) - at : size - at;
        const char *problem = NULL;
        int r = parse_info_line(text + at, length, names, &problem);

        if (r == -ENOMEM)
            return error_no_memory(err);
        if (r < 0)
            return error_say(err, r, "reading %s: line %lu %s", path, number, problem);
        at += length + 1;
    }
    *ret_names = take_pointer(names);
    return 0;
}

int u16_names_read(const char *path, struct u16_names **ret_names, struct error *err)
{
    AUTO_CLOSE int fd = -1;
    AUTO_FREE char *text = NULL;
    size_t capacity = 0, size = 0;
    int r = foreign_file_read(path, "opening", &fd, err);

    if (r < 0)
        return r;
    for (;;) {
        ssize_t got;

        if (array_reserve(&text, &capacity, size + 65536) < 0)
            return error_no_memory(err);
        got = read(fd, text + size, capacity - size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set(err, -errno, NULL, "reading %s", path);
        if (got == 0)
            break;
        size += (size_t)got;
        if (size > INFO_LIMIT)
            return error_say(err, -EFBIG, "reading %s: an .info file of more than %u MiB", path,
                             INFO_LIMIT >> 20);
    }
    return u16_names_parse(text, size, path, ret_names, err);
}
