/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/images/linkers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "collector/process/target_file.h"
#include "image/elf/object.h"
#include "image/functions/functions.h"

void linkers_release(struct linkers *linkers)
{
    for (size_t i = 0; i < linkers->count; i++)
        close(linkers->linkers[i].file);
    free(linkers->linkers);
    *linkers = (struct linkers){0};
}

static bool is_called(const struct image_function *function, const char *name)
{
    bool found = !strcmp(function->name, name);

    for (char **alias = function->aliases; !found && alias && *alias; alias++)
        found = !strcmp(*alias, name);
    return found;
}

/* False: this linker has no such place. */
static bool find_rendezvous(int file, const char *name, struct linker_sites *ret_sites)
{
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    struct image_function *functions;
    uint64_t state = 0, rendezvous = 0;
    size_t count;

    if (elf_image_open_fd(file, name, &image, NULL) || image_functions(image, &functions, &count, NULL))
        return false;
    for (size_t i = 0; !rendezvous && i < count; i++) {
        if (!is_called(&functions[i], "_dl_debug_state"))
            continue;
        rendezvous = functions[i].address;
        ret_sites->rendezvous = functions[i].file_offset;
    }
    image_functions_free(functions, count);
    ret_sites->state =
        rendezvous && image_object_address(image, "_r_debug", &state) == 0 ? state - rendezvous : 0;
    return rendezvous;
}

int linkers_find(struct linkers *linkers, const struct code_mapping *mapping,
                 const struct linker **ret_linker)
{
    AUTO_TARGET_FILE struct target_file file = TARGET_FILE_NONE;
    struct linker *linker;
    int r;

    for (size_t i = 0; i < linkers->count; i++) {
        *ret_linker = &linkers->linkers[i];
        if ((*ret_linker)->device == mapping->device && (*ret_linker)->inode == mapping->inode)
            return 0;
    }
    r = target_file_of_mapping(mapping, &file);
    if (r)
        return r;
    if (array_reserve(&linkers->linkers, &linkers->capacity, linkers->count + 1))
        return -ENOMEM;
    linker = &linkers->linkers[linkers->count++];
    *linker = (struct linker){.device = mapping->device, .inode = mapping->inode, .file = take_fd(&file.fd)};
    linker->meets = find_rendezvous(linker->file, mapping->path, &linker->sites);
    *ret_linker = linker;
    return 0;
}

const struct code_mapping *linkers_mapping(const struct code_mapping *mappings, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = path_file_name(mappings[i].path);

        if (!strncmp(name, "ld-", 3) || !strncmp(name, "ld.so", 5))
            return &mappings[i];
    }
    return NULL;
}
