/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stacks/code_images.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "collector/process/process.h"
#include "collector/process/target_memory.h"

#define VDSO_LIMIT (1u << 20)
#define DELETED " (deleted)"

static void image_free(struct code_image *image)
{
    image_functions_free(image->functions, image->function_count);
    elf_image_free(image->elf);
    if (image->fd >= 0)
        close(image->fd);
    free(image->path);
    free(image->file);
    free(image);
}

DEFINE_CLEANUP(cleanup_image, struct code_image *, image_free)

void code_images_release(struct code_images *images)
{
    for (size_t i = 0; i < images->count; i++)
        image_free(images->items[i]);
    free(images->items);
    *images = (struct code_images){0};
}

/* The kernel's own object is in no file: it is copied out of the process. */
static int open_vdso(pid_t pid, const struct live_mapping *mapping)
{
    size_t size = mapping->end - mapping->start;
    AUTO_FREE void *bytes = size <= VDSO_LIMIT ? malloc(size) : NULL;
    AUTO_CLOSE int fd = bytes ? memfd_create("vdso", MFD_CLOEXEC) : -1;

    if (fd < 0 || target_memory_read(pid, mapping->start, bytes, size) != size ||
        write(fd, bytes, size) != (ssize_t)size)
        return -ENOENT;
    return take_fd(&fd);
}

static int open_mapping(pid_t pid, const struct live_mapping *mapping)
{
    if (mapping->kind == LIVE_VDSO)
        return open_vdso(pid, mapping);
    return mapping->kind == LIVE_FILE ? live_mapping_open(pid, mapping) : -ENOENT;
}

/* The path that the process sees. In memory from malloc. */
static char *path_of(pid_t pid, const struct live_mapping *mapping)
{
    char name[64], path[PATH_MAX];
    ssize_t length;

    if (mapping->kind == LIVE_VDSO)
        return strdup("[vdso]");
    snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, mapping->start, mapping->end);
    length = target_proc_link(pid, name, path, sizeof(path) - 1);
    if (length < 0)
        return strdup("?");
    path[length] = '\0';
    if ((size_t)length > strlen(DELETED) && !strcmp(path + length - strlen(DELETED), DELETED))
        path[length - (ssize_t)strlen(DELETED)] = '\0';
    return strdup(path);
}

static struct code_image *find(const struct code_images *images, const struct stat *file)
{
    for (size_t i = 0; i < images->count; i++)
        if (images->items[i]->device == file->st_dev && images->items[i]->inode == file->st_ino)
            return images->items[i];
    return NULL;
}

/* What cannot be read as an image stays, without `elf`, so that it is not tried again. Takes over `fd`. */
static int add(struct code_images *images, pid_t pid, const struct live_mapping *mapping, int fd,
               const struct stat *file, struct code_image **ret_image)
{
    CLEANUP(cleanup_image) struct code_image *image = calloc(1, sizeof(*image));
    char root[64];

    if (!image) {
        close(fd);
        return -ENOMEM;
    }
    image->fd = fd;
    image->device = file->st_dev;
    image->inode = file->st_ino;
    image->path = path_of(pid, mapping);
    if (!image->path || asprintf(&image->file, "/proc/self/fd/%d", fd) < 0 ||
        array_reserve(&images->items, &images->capacity, images->count + 1))
        return -ENOMEM;
    process_root_link(pid, root, sizeof(root));
    if (!elf_image_open_fd(fd, image->path, &image->elf, NULL) && elf_image_set_debug_root(image->elf, root))
        return -ENOMEM;
    images->items[images->count++] = *ret_image = take_pointer(image);
    return 0;
}

int code_images_get(struct code_images *images, pid_t pid, const struct live_mapping *mapping,
                    struct code_image **ret_image)
{
    AUTO_CLOSE int fd = open_mapping(pid, mapping);
    struct code_image *image;
    struct stat file;

    if (fd < 0 || fstat(fd, &file))
        return -ENOENT;
    image = find(images, &file);
    if (!image) {
        int r = add(images, pid, mapping, take_fd(&fd), &file, &image);

        if (r)
            return r;
    }
    if (!image->elf)
        return -ENOENT;
    *ret_image = image;
    return 0;
}

const struct image_function *code_image_function(struct code_image *image, uint64_t address)
{
    if (!image->functions_read) {
        image->functions_read = true;
        if (image_functions(image->elf, &image->functions, &image->function_count, NULL))
            image->function_count = 0;
    }
    return image_functions_owner(image->functions, image->function_count, address);
}
