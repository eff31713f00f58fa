/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/go/go_standard.h"

#include <string.h>

#include "base/array.h"

/* First elements of the standard library's import paths, go 1.17 to 1.26. */
static const char *const packages[] = {
    "archive",  "bufio",   "builtin", "bytes",    "cmp",      "compress", "container", "context", "crypto",
    "database", "debug",   "embed",   "encoding", "errors",   "expvar",   "flag",      "fmt",     "go",
    "hash",     "html",    "image",   "index",    "internal", "io",       "iter",      "log",     "maps",
    "math",     "mime",    "net",     "os",       "path",     "plugin",   "reflect",   "regexp",  "runtime",
    "slices",   "sort",    "strconv", "strings",  "structs",  "sync",     "syscall",   "testing", "text",
    "time",     "unicode", "unique",  "unsafe",   "vendor",   "weak",
};

char *go_standard_folder(struct elf_image *image, uint64_t runtime_function)
{
    struct go_frame frame;
    const char *end = NULL;

    if (gopclntab_frames(image, runtime_function, &frame, 1))
        end = strstr(frame.file, "runtime/");
    return end ? strndup(frame.file, (size_t)(end - frame.file)) : strdup("");
}

bool go_is_standard(const char *folder, const struct go_frame *frame)
{
    size_t length = strcspn(frame->function, "/.");

    if (*folder)
        return !strncmp(frame->file, folder, strlen(folder));
    for (size_t i = 0; i < ARRAY_SIZE(packages); i++)
        if (strlen(packages[i]) == length && !strncmp(packages[i], frame->function, length))
            return true;
    return false;
}
