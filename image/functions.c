/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/functions.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "image/demangle.h"
#include "image/sources.h"

/* ---------------------------------------------------------------------------------------------- lists */

int function_list_add(struct function_list *list, const char *name, uint64_t address, uint64_t size,
                      unsigned flags)
{
    AUTO_FREE char *copy = strdup(name);

    if (!copy || array_reserve(&list->items, &list->capacity, list->count + 1) < 0)
        return -ENOMEM;
    list->items[list->count++] = (struct image_function){
        .name = take_pointer(copy),
        .address = address,
        .size = size,
        .flags = flags,
    };
    return 0;
}

void image_function_clear(struct image_function *function)
{
    for (char **alias = function->aliases; alias && *alias; alias++)
        free(*alias);
    free(function->aliases);
    free(function->name);
    free(function->demangled);
    free(function->file);
}

void image_functions_free(struct image_function *functions, size_t count)
{
    for (size_t i = 0; i < count; i++)
        image_function_clear(&functions[i]);
    free(functions);
}

static void function_list_release(struct function_list *list)
{
    image_functions_free(list->items, list->count);
}

/* ---------------------------------------------------------------------------------------------- building */

/* By address; where a symbol and a stub share one, the symbol first. */
static int compare_functions(const void *left, const void *right)
{
    const struct image_function *a = left, *b = right;

    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return (int)(a->flags & IMAGE_FUNCTION_PLT) - (int)(b->flags & IMAGE_FUNCTION_PLT);
}

/* Sorts, drops what has no place in the file or an address that an earlier entry has, and finds file offsets.
 */
static void put_in_order(const struct elf_image *image, struct function_list *list)
{
    size_t kept = 0;

    if (list->count)
        qsort(list->items, list->count, sizeof(*list->items), compare_functions);
    for (size_t i = 0; i < list->count; i++) {
        struct image_function *function = &list->items[i];

        if ((kept && list->items[kept - 1].address == function->address) ||
            elf_image_file_offset(image, function->address, &function->file_offset) < 0) {
            image_function_clear(function);
            continue;
        }
        if (function->address == elf_image_facts(image)->entry)
            function->flags |= IMAGE_FUNCTION_ENTRY_POINT;
        list->items[kept++] = *function;
    }
    list->count = kept;
}

/* "foo::bar()@plt" for the stub of _ZN3foo3barEv. */
static int demangle_function(struct image_function *function)
{
    const size_t suffix = strlen("@plt");
    AUTO_FREE char *plain = NULL;
    AUTO_FREE char *demangled = NULL;

    if (!(function->flags & IMAGE_FUNCTION_PLT)) {
        function->demangled = demangle(function->name);
        return 0;
    }
    plain = strndup(function->name, strlen(function->name) - suffix);
    if (!plain)
        return -ENOMEM;
    demangled = demangle(plain);
    if (demangled && asprintf(&function->demangled, "%s@plt", demangled) < 0) {
        function->demangled = NULL;
        return -ENOMEM;
    }
    return 0;
}

int image_functions(struct elf_image *image, struct image_function **ret_functions, size_t *ret_count,
                    struct error *err)
{
    CLEANUP(function_list_release) struct function_list list = {0};
    int r = symbols_collect(image, &list, err);

    if (r < 0)
        return r;
    r = plt_collect(image, &list, err);
    if (r < 0)
        return r;
    put_in_order(image, &list);
    for (size_t i = 0; i < list.count; i++)
        if (demangle_function(&list.items[i]) < 0)
            return error_no_memory(err);
    if (lines_fill(image, list.items, list.count) < 0)
        return error_no_memory(err);
    *ret_count = list.count;
    list.count = 0;
    *ret_functions = take_pointer(list.items);
    return 0;
}

/* ---------------------------------------------------------------------------------------------- questions */

size_t image_functions_own(const struct image_function *functions, size_t count)
{
    size_t own = 0;

    for (size_t i = 0; i < count; i++)
        own += !(functions[i].flags & IMAGE_FUNCTION_PLT);
    return own;
}

const struct image_function *image_functions_find(const struct image_function *functions, size_t count,
                                                  uint64_t address)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (functions[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || address - functions[low - 1].address >= functions[low - 1].size)
        return NULL;
    return &functions[low - 1];
}
