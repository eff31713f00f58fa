/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/uprobe/bpf_messages.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

#define LOG_BEGINS "-- BEGIN PROG LOAD LOG --\n"
#define LOG_ENDS "-- END PROG LOAD LOG --"
#define LOG_STATISTICS "\nprocessed " /* how much the verifier had to look at */

static _Thread_local struct {
    char text[240];
    bool is_verifiers;
} reason;

static void (*shown)(const char *text);

/* The last line of the verifier's log that says something: behind the code that it went through, before its
 * statistics. Returns its length. */
static size_t last_word(const char *log, const char **ret_line)
{
    const char *end = strstr(log, LOG_STATISTICS);

    if (!end)
        end = strstr(log, LOG_ENDS);
    if (!end)
        end = log + strlen(log);
    while (end > log && end[-1] == '\n')
        end--;
    *ret_line = end;
    while (*ret_line > log && (*ret_line)[-1] != '\n')
        --*ret_line;
    return (size_t)(end - *ret_line);
}

/* "libbpf: prog 'on_call': ...": its length. */
static size_t program_of(const char *text, const char **ret_name)
{
    const char *name = strstr(text, "prog '");

    *ret_name = name ? name + strlen("prog '") : "";
    return strcspn(*ret_name, "'");
}

static void keep(const char *text)
{
    const char *log = strstr(text, LOG_BEGINS), *line, *name;
    size_t length, name_length;

    if (log) {
        length = last_word(log + strlen(LOG_BEGINS), &line);
        name_length = program_of(text, &name);
        reason.is_verifiers = true;
        snprintf(reason.text, sizeof(reason.text), "%.*s: %.*s", (int)name_length, name, (int)length, line);
    } else if (!reason.text[0] && !strncmp(text, "libbpf: ", strlen("libbpf: "))) {
        line = text + strlen("libbpf: ");
        snprintf(reason.text, sizeof(reason.text), "%.*s", (int)strcspn(line, "\n"), line);
    }
}

static __attribute__((format(printf, 2, 0))) int take(enum libbpf_print_level level, const char *format,
                                                      va_list args)
{
    AUTO_FREE char *text = NULL;

    if (level != LIBBPF_WARN || vasprintf(&text, format, args) < 0)
        return 0;
    if (!reason.is_verifiers)
        keep(text);
    if (shown)
        shown(text);
    return 0;
}

void bpf_messages_begin(void)
{
    reason.text[0] = '\0';
    reason.is_verifiers = false;
    libbpf_set_print(take);
}

const char *bpf_messages_reason(void)
{
    return reason.text;
}

void bpf_messages_show(void (*show)(const char *text))
{
    shown = show;
}

int bpf_messages_error(struct error *err, int code, const char *what)
{
    if (reason.is_verifiers)
        return error_say(err, code == -EPERM ? -EACCES : code,
                         "%s: the kernel rejects %s (-v prints its messages)", what, reason.text);
    if (code == -EPERM || code == -EACCES)
        return error_set(err, -EPERM, "run as root, or with CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE", "%s",
                         what);
    if (reason.text[0])
        return error_say(err, code, "%s: %s (see tracectl doctor)", what, reason.text);
    return error_set(err, code, "see tracectl doctor", "%s", what);
}
