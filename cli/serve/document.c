/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/serve/document.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { ARGUMENTS_MAX = 16 };

/* The whole of a file as text, in memory from malloc. */
static char *read_text(int fd)
{
    struct stat status;
    char *text;
    size_t size = 0;

    if (fstat(fd, &status) < 0 || !(text = malloc((size_t)status.st_size + 1)))
        return NULL;
    while (size < (size_t)status.st_size) {
        ssize_t part = pread(fd, text + size, (size_t)status.st_size - size, (off_t)size);

        if (part <= 0)
            break;
        size += (size_t)part;
    }
    text[size] = '\0';
    return text;
}

static int run(const struct command *command, const char *const *arguments)
{
    char name[64];
    char *argv[ARGUMENTS_MAX + 2] = {name};
    int argc = 1;

    snprintf(name, sizeof(name), "tracectl %s", command->name);
    for (; arguments[argc - 1] && argc <= ARGUMENTS_MAX; argc++)
        argv[argc] = (char *)arguments[argc - 1];
    return command->run(argc, argv);
}

int document_run(const struct command *command, bool json, const char *const *arguments,
                 struct document *ret_document)
{
    AUTO_CLOSE int output = memfd_create("output", MFD_CLOEXEC), errors = memfd_create("errors", MFD_CLOEXEC),
                   old_output = dup(STDOUT_FILENO), old_errors = dup(STDERR_FILENO);
    bool old_json = cli.json;

    *ret_document = (struct document){.status = EXIT_FAILED};
    if (output < 0 || errors < 0 || old_output < 0 || old_errors < 0)
        return -EIO;
    fflush(stdout);
    if (dup2(output, STDOUT_FILENO) < 0 || dup2(errors, STDERR_FILENO) < 0)
        return -EIO;
    cli.json = json;
    ret_document->status = run(command, arguments);
    cli.json = old_json;
    fflush(stdout);
    fflush(stderr);
    if (dup2(old_output, STDOUT_FILENO) < 0 || dup2(old_errors, STDERR_FILENO) < 0)
        return -EIO;
    ret_document->output = read_text(output);
    ret_document->errors = read_text(errors);
    return ret_document->output && ret_document->errors ? 0 : -ENOMEM;
}

void document_release(struct document *document)
{
    free(document->output);
    free(document->errors);
}

json_t *document_read(const struct command *command, const char *const *arguments)
{
    CLEANUP(document_release) struct document document;

    if (document_run(command, true, arguments, &document) < 0 || !document_is_good(&document))
        return NULL;
    return json_loads(document.output, 0, NULL);
}
