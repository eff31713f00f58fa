/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/common/filter_file.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

DEFINE_CLEANUP(cleanup_library, struct filter_library *, filter_library_free)

/* The default file's path in memory from malloc; NULL: there is no home, or no memory. */
static char *default_path(void)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    char *path = NULL;
    int length = -1;

    if (config && *config == '/') /* the specification has relative ones ignored */
        length = asprintf(&path, "%s/tracectl/filters", config);
    else if (home && *home)
        length = asprintf(&path, "%s/.config/tracectl/filters", home);
    return length < 0 ? NULL : path;
}

int filter_file_read(const char *path, struct filter_library **ret_library, struct error *err)
{
    CLEANUP(cleanup_library) struct filter_library *library = NULL;
    AUTO_FREE char *found = path ? NULL : default_path();
    int r = filter_library_new(&library, err);

    if (r == 0 && path)
        r = filter_library_read(library, path, err);
    else if (r == 0 && found && !access(found, F_OK))
        r = filter_library_read(library, found, err);
    if (r < 0)
        return r;
    *ret_library = take_pointer(library);
    return 0;
}

char *filter_file_help(int key, const char *text, void *input)
{
    char *list = NULL;
    size_t size = 0;
    FILE *stream;

    if (key != ARGP_KEY_HELP_EXTRA)
        return (char *)text;
    stream = open_memstream(&list, &size);
    if (!stream)
        return (char *)text;
    fputs("Filter sets:\n", stream);
    for (const struct filter_set *set = filter_sets; set->name; set++)
        text_print(stream, "  %-13s %s\n", set->name, set->summary);
    fputs(
        "  image:GLOB    functions of these images (image:libc*)\n"
        "  source:GLOB   functions whose source file is there (source:src/net/)\n"
        "  /REGEX/       functions whose name matches\n"
        "  !mem, -mem    not these; also !image:libc*, !/REGEX/, ...\n",
        stream);
    fclose(stream);
    return list;
}
