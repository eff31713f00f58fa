/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "built.h"
#include "base/error.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char split_source[] =
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n"
    "#define APART __attribute__((noinline, noclone))\n"
    "__attribute__((cold, noinline)) void fail(const char *why, int n)\n"
    "{\n"
    "    fprintf(stderr, \"%s %d\\n\", why, n);\n"
    "    exit(n);\n"
    "}\n"
    "APART static int odd(int n)\n"
    "{\n"
    "    return getenv(\"ODD\") ? n & 1 : n;\n"
    "}\n"
    "APART int work(int n, char **names)\n"
    "{\n"
    "    int sum = 0;\n"
    "    for (int i = 0; i < n; i++) {\n"
    "        if (__builtin_expect(!names[i], 0))\n"
    "            fail(\"no name\", i);\n"
    "        sum += odd(names[i][0]) + odd(sum);\n"
    "    }\n"
    "    return sum;\n"
    "}\n"
    "int main(int argc, char **argv)\n"
    "{\n"
    "    return work(argc, argv) + work(1, argv);\n"
    "}\n";

static char folder[] = "/tmp/tracectl-built-XXXXXX";

static void delete_folder(void)
{
    char command[PATH_MAX];

    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    if (system(command) != 0)
        perror(folder);
}

const char *built_folder(void)
{
    static bool made;

    if (!made) {
        cr_assert_not_null(mkdtemp(folder));
        atexit(delete_folder);
        made = true;
    }
    return folder;
}

void built_run(const char *command, ...)
{
    char line[4096], whole[8192];
    va_list arguments;

    va_start(arguments, command);
    vsnprintf(line, sizeof(line), command, arguments);
    va_end(arguments);
    snprintf(whole, sizeof(whole), "cd '%s' && exec 2>log && { %s; } || { cat log; exit 1; }", built_folder(),
             line);
    cr_assert_eq(system(whole), 0, "%s", line);
}

void built_write(const char *name, const char *text)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", built_folder(), name);
    AUTO_FCLOSE FILE *file = fopen(path, "w");
    cr_assert(file && fputs(text, file) >= 0);
}

struct elf_image *built_open(const char *name)
{
    struct elf_image *image = NULL;
    struct error err = {0};
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", built_folder(), name);
    cr_assert_eq(elf_image_open(path, &image, &err), 0, "%s", err.message);
    return image;
}

struct functions built_functions(struct elf_image *image)
{
    struct functions functions = {0};
    struct error err = {0};

    cr_assert_eq(image_functions(image, &functions.items, &functions.count, &err), 0, "%s", err.message);
    return functions;
}

void functions_release(struct functions *functions)
{
    image_functions_free(functions->items, functions->count);
}

const struct image_function *functions_named(const struct functions *functions, const char *name)
{
    for (size_t i = 0; i < functions->count; i++)
        if (strcmp(functions->items[i].name, name) == 0)
            return &functions->items[i];
    return NULL;
}

const struct image_function *functions_at(const struct functions *functions, uint64_t address)
{
    const struct image_function *found = image_functions_find(functions->items, functions->count, address);

    return found && found->address == address ? found : NULL;
}
