/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/functions/functions.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/path.h"
#include "image/functions/eh_frame.h"
#include "image/functions/fragments.h"
#include "image/functions/function_names.h"
#include "image/functions/gopclntab.h"
#include "image/functions/sources.h"

/* ---------------------------------------------------------------------------------------------- lists */

int function_list_add(struct function_list *list, const char *name, uint64_t address, uint64_t size,
                      unsigned flags, enum image_source source)
{
    AUTO_FREE char *copy = strdup(name);

    if (!copy || array_reserve(&list->items, &list->capacity, list->count + 1) < 0)
        return -ENOMEM;
    list->items[list->count++] = (struct image_function){
        .name = take_pointer(copy),
        .address = address,
        .size = size,
        .flags = flags,
        .source = source,
    };
    return 0;
}

int image_function_add_alias(struct image_function *function, const char *name)
{
    AUTO_FREE char *copy = strdup(name);
    size_t count = 0;
    char **grown;

    while (function->aliases && function->aliases[count])
        count++;
    grown = copy ? realloc(function->aliases, (count + 2) * sizeof(*grown)) : NULL;
    if (!grown)
        return -ENOMEM;
    grown[count] = take_pointer(copy);
    grown[count + 1] = NULL;
    function->aliases = grown;
    return 0;
}

void image_function_clear(struct image_function *function)
{
    for (char **alias = function->aliases; alias && *alias; alias++)
        free(*alias);
    free(function->aliases);
    free(function->name);
    free(function->demangled);
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

/* ---------------------------------------------------------------------------------------------- merging */

/* By address; of several for one address that of the most telling source first, and symbols without a type,
 * which may be labels, last. */
static int compare_functions(const void *left, const void *right)
{
    const struct image_function *a = left, *b = right;
    bool a_untyped = a->flags & IMAGE_FUNCTION_NO_TYPE, b_untyped = b->flags & IMAGE_FUNCTION_NO_TYPE;

    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    if (a_untyped != b_untyped)
        return a_untyped ? 1 : -1;
    return (int)a->source - (int)b->source;
}

/* Takes over from `other`, which has the same address, what `function` lacks: a size, and Go's own name where
 * the symbol table has another one. */
static int absorb(struct image_function *function, const struct image_function *other)
{
    if (function->flags & IMAGE_FUNCTION_SIZE_GUESSED && !(other->flags & IMAGE_FUNCTION_SIZE_GUESSED)) {
        function->size = other->size;
        function->flags &= ~(unsigned)IMAGE_FUNCTION_SIZE_GUESSED;
    }
    if (other->source == IMAGE_SOURCE_GOPCLNTAB && strcmp(function->name, other->name) != 0)
        return image_function_add_alias(function, other->name);
    return 0;
}

/* Sorts, and makes one function of those that share an address. */
static int merge(struct function_list *list)
{
    size_t kept = 0;
    int r = 0;

    if (list->count)
        qsort(list->items, list->count, sizeof(*list->items), compare_functions);
    for (size_t i = 0; i < list->count; i++) {
        struct image_function *function = &list->items[i];

        if (!kept || list->items[kept - 1].address != function->address) {
            list->items[kept++] = *function;
            continue;
        }
        if (r == 0)
            r = absorb(&list->items[kept - 1], function);
        image_function_clear(function);
    }
    list->count = kept;
    return r;
}

/* ---------------------------------------------------------------------------------------------- .eh_frame */

static int add_nameless(struct elf_image *image, struct function_list *list, uint64_t address, uint64_t size)
{
    const char *name_of_file = path_file_name(elf_image_name(image));
    AUTO_FREE char *name = NULL;

    if (asprintf(&name, "%s+0x%" PRIx64, name_of_file, address) < 0) {
        name = NULL; /* undefined after a failure */
        return -ENOMEM;
    }
    return function_list_add(list, name, address, size, IMAGE_FUNCTION_NO_NAME, IMAGE_SOURCE_EH_FRAME);
}

/* How long a function that nothing names can be: up to functions[next] or a later one, if that has a size. */
static uint64_t cut(const struct image_function *functions, size_t next, size_t count, const struct fde *fde)
{
    for (; next < count && functions[next].address - fde->address < fde->size; next++)
        if (!(functions[next].flags & IMAGE_FUNCTION_SIZE_GUESSED))
            return functions[next].address - fde->address;
    return fde->size;
}

/* Appends a function for every entry that is neither inside a function with a size nor a signal trampoline,
 * and gives a size to those that have none and begin where an entry does. `list` is sorted, but for what is
 * appended. */
static int add_frames(struct elf_image *image, const struct fde_list *fdes, struct function_list *list)
{
    size_t known = list->count, next = 0;
    uint64_t reached = 0; /* the furthest end of a function with a size */

    for (size_t i = 0; i < fdes->count; i++) {
        const struct fde *fde = &fdes->items[i];
        bool begins = false;

        for (; next < known && list->items[next].address <= fde->address; next++) {
            struct image_function *function = &list->items[next];

            begins = function->address == fde->address;
            if (begins && fde->entry != FDE_SIGNAL && function->flags & IMAGE_FUNCTION_NO_TYPE)
                function->flags |= IMAGE_FUNCTION_PROVED;
            if (begins && function->flags & IMAGE_FUNCTION_SIZE_GUESSED && function->address >= reached) {
                function->size = fde->size;
                function->flags &= ~(unsigned)IMAGE_FUNCTION_SIZE_GUESSED;
            }
            if (!(function->flags & IMAGE_FUNCTION_SIZE_GUESSED) &&
                function->address + function->size > reached)
                reached = function->address + function->size;
        }
        if (begins || fde->address < reached || fde->entry == FDE_SIGNAL)
            continue;
        if (add_nameless(image, list, fde->address, cut(list->items, next, known, fde)) < 0)
            return -ENOMEM;
        reached = fde->address + fde->size;
    }
    return 0;
}

/* ---------------------------------------------------------------------------------------------- the result
 */

/* Drops what has no place in the file, and finds the offsets of the rest. */
static void place(const struct elf_image *image, struct function_list *list)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++) {
        struct image_function *function = &list->items[i];

        if (elf_image_file_offset(image, function->address, &function->file_offset) < 0) {
            image_function_clear(function);
            continue;
        }
        if (function->address == elf_image_facts(image)->entry)
            function->flags |= IMAGE_FUNCTION_ENTRY_POINT;
        list->items[kept++] = *function;
    }
    list->count = kept;
}

/* Ends guessed extents at the next function, and marks what begins inside another function with a size. */
static void delimit(struct function_list *list)
{
    uint64_t reached = 0;

    for (size_t i = 0; i < list->count; i++) {
        struct image_function *function = &list->items[i];

        if (function->flags & IMAGE_FUNCTION_PLT)
            continue;
        if (function->address < reached)
            function->flags |= IMAGE_FUNCTION_INSIDE;
        if (!(function->flags & IMAGE_FUNCTION_SIZE_GUESSED) && function->address + function->size > reached)
            reached = function->address + function->size;
        if (function->flags & IMAGE_FUNCTION_SIZE_GUESSED && i + 1 < list->count &&
            function[1].address - function->address < function->size)
            function->size = function[1].address - function->address;
    }
}

/* All that the sources know, one function for each address. */
static int collect(struct elf_image *image, const struct code_map *map, const struct fde_list *fdes,
                   struct function_list *list, struct error *err)
{
    int r = symbols_collect(image, map, list, err);

    if (r < 0)
        return r;
    if (gopclntab_collect(image, map, list) < 0 || merge(list) < 0)
        return error_no_memory(err);
    r = plt_collect(image, map, list, err);
    if (r < 0)
        return r;
    if (merge(list) < 0 || add_frames(image, fdes, list) < 0 || merge(list) < 0 ||
        labels_resolve(image, map, list) < 0)
        return error_no_memory(err);
    place(image, list);
    delimit(list);
    return implementations_name(image, list) < 0 ? error_no_memory(err) : 0;
}

int image_functions(struct elf_image *image, struct image_function **ret_functions, size_t *ret_count,
                    struct error *err)
{
    CLEANUP(function_list_release) struct function_list list = {0};
    CLEANUP(code_map_release) struct code_map map = {0};
    CLEANUP(fde_list_release) struct fde_list fdes = {0};
    int r;

    if (code_map_read(image, &map) < 0 || eh_frame_read(image, &map, &fdes) < 0)
        return error_no_memory(err);
    r = collect(image, &map, &fdes, &list, err);
    if (r < 0)
        return r;
    if (fragments_find(image, &map, &fdes, list.items, list.count) < 0)
        return error_no_memory(err);
    for (size_t i = 0; i < list.count; i++)
        if (image_function_demangle(list.items[i].name, list.items[i].flags & IMAGE_FUNCTION_PLT,
                                    &list.items[i].demangled) < 0)
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

const struct image_function *image_functions_owner(const struct image_function *functions, size_t count,
                                                   uint64_t address)
{
    const struct image_function *function = image_functions_find(functions, count, address);

    if (!function || !(function->flags & IMAGE_FUNCTION_FRAGMENT))
        return function;
    return function->part_of ? image_functions_find(functions, count, function->part_of) : NULL;
}
