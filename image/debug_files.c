/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/debug_files.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <linux/openat2.h>
#include <lzma.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <zlib.h>

#include "base/array.h"

#define DEBUG_DIRECTORY "/usr/lib/debug"
#define BUILD_ID_MAX 64
/* A .gnu_debugdata of the largest libraries unpacks to 20 MB; more than this is a bomb. */
#define UNPACKED_MAX ((size_t)64 << 20)
#define UNPACK_MEMORY_MAX ((uint64_t)128 << 20)

struct debug_files {
    bool looked_for_separate, looked_for_mini;
    int fd;
    Elf *separate;
    Elf *mini;
    uint8_t *unpacked; /* what `mini` reads from */
};

static void release_files(void *part)
{
    struct debug_files *files = part;

    elf_end(files->separate);
    elf_end(files->mini);
    if (files->fd >= 0)
        close(files->fd);
    free(files->unpacked);
    free(files);
}

static struct debug_files *files_of(struct elf_image *image)
{
    struct debug_files *files = elf_image_part(image, IMAGE_PART_DEBUG_FILES);

    if (files)
        return files;
    files = calloc(1, sizeof(*files));
    if (!files)
        return NULL;
    files->fd = -1;
    elf_image_keep_part(image, IMAGE_PART_DEBUG_FILES, files, release_files);
    return files;
}

/* ---------------------------------------------------------------------------------------------- belonging */

/* CRC-32 of the whole file, as .gnu_debuglink has it. */
static bool has_checksum(int fd, uint32_t wanted)
{
    uint8_t buffer[65536];
    uLong checksum = crc32(0, NULL, 0);
    off_t at = 0;
    ssize_t got;

    while ((got = pread(fd, buffer, sizeof(buffer), at)) > 0) {
        checksum = crc32(checksum, buffer, (uInt)got);
        at += got;
    }
    return got == 0 && checksum == wanted;
}

/* `checksum` NULL: only the build id counts. */
static bool belongs(Elf *image, Elf *candidate, int fd, const uint32_t *checksum)
{
    const void *id, *other;
    ssize_t size = dwelf_elf_gnu_build_id(image, &id), other_size = dwelf_elf_gnu_build_id(candidate, &other);
    GElf_Ehdr header;

    if (elf_kind(candidate) != ELF_K_ELF || !gelf_getehdr(candidate, &header) ||
        header.e_machine != EM_X86_64)
        return false;
    if (size > 0 && other_size > 0)
        return size == other_size && memcmp(id, other, (size_t)size) == 0;
    return checksum && has_checksum(fd, *checksum);
}

/* Opens `path` of the file system that begins at the debug root. Symbolic links stay in it. */
static int open_below_root(struct elf_image *image, const char *path)
{
    const char *root = elf_image_debug_root(image);
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, .resolve = RESOLVE_IN_ROOT};

    if (!*root)
        return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    AUTO_CLOSE int directory = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return directory < 0 ? -1 : (int)syscall(SYS_openat2, directory, path, &how, sizeof(how));
}

/* Takes the file at `path` if it is the image's. */
static bool try_file(struct elf_image *image, struct debug_files *files, const char *path,
                     const uint32_t *checksum)
{
    AUTO_CLOSE int fd = open_below_root(image, path);
    struct stat status, own;
    Elf *elf;

    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
        fstat(elf_image_fd(image), &own) < 0 || (status.st_dev == own.st_dev && status.st_ino == own.st_ino))
        return false;
    elf = elf_begin(fd, ELF_C_READ, NULL);
    if (!elf || !belongs(elf_image_elf(image), elf, fd, checksum)) {
        elf_end(elf);
        return false;
    }
    files->separate = elf;
    files->fd = take_fd(&fd);
    return true;
}

/* ---------------------------------------------------------------------------------------------- searching */

static bool try_build_id(struct elf_image *image, struct debug_files *files)
{
    const char *id = elf_image_facts(image)->build_id;
    char path[sizeof(DEBUG_DIRECTORY) + 2 * BUILD_ID_MAX + 32];

    if (!id || strlen(id) < 4 || strlen(id) > 2 * BUILD_ID_MAX)
        return false;
    snprintf(path, sizeof(path), DEBUG_DIRECTORY "/.build-id/%.2s/%s.debug", id, id + 2);
    return try_file(image, files, path, NULL);
}

static bool try_beside(struct elf_image *image, struct debug_files *files, const char *directory,
                       const char *link, uint32_t checksum)
{
    static const struct {
        const char *above, *below;
    } places[] = {{"", ""}, {"", "/.debug"}, {DEBUG_DIRECTORY, ""}};
    char path[PATH_MAX];

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        int length;

        if (*places[i].above && *directory && *directory != '/')
            continue;
        length = snprintf(path, sizeof(path), "%s%s%s/%s", places[i].above, directory, places[i].below, link);
        if (length > 0 && (size_t)length < sizeof(path) && try_file(image, files, path, &checksum))
            return true;
    }
    return false;
}

/* Cuts the last component off: "" for the root, "." for a name without a folder. */
static void cut_name(char *path)
{
    char *slash = strrchr(path, '/');

    if (slash)
        *slash = '\0';
    else
        strcpy(path, ".");
}

/* The folder of the image as it was named, and as the kernel knows it (another name after a link). */
static void try_debug_link(struct elf_image *image, struct debug_files *files)
{
    char path[PATH_MAX], self[64];
    GElf_Word checksum;
    const char *link = dwelf_elf_gnu_debuglink(elf_image_elf(image), &checksum);
    ssize_t length;

    if (!link || !*link || strchr(link, '/') || strlen(elf_image_name(image)) >= sizeof(path))
        return;
    strcpy(path, elf_image_name(image));
    cut_name(path);
    if (try_beside(image, files, path, link, checksum) || *elf_image_debug_root(image))
        return;
    snprintf(self, sizeof(self), "/proc/self/fd/%d", elf_image_fd(image));
    length = readlink(self, path, sizeof(path) - 1);
    if (length <= 0)
        return;
    path[length] = '\0';
    cut_name(path);
    try_beside(image, files, path, link, checksum);
}

Elf *debug_files_separate(struct elf_image *image)
{
    struct debug_files *files = files_of(image);

    if (!files)
        return NULL;
    if (!files->looked_for_separate) {
        files->looked_for_separate = true;
        if (!try_build_id(image, files))
            try_debug_link(image, files);
    }
    return files->separate;
}

/* ----------------------------------------------------------------------------------------------
 * .gnu_debugdata */

static Elf_Data *find_debugdata(Elf *elf)
{
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    size_t names;

    if (elf_getshdrstrndx(elf, &names) < 0)
        return NULL;
    while ((section = elf_nextscn(elf, section))) {
        const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;

        if (name && strcmp(name, ".gnu_debugdata") == 0 && header.sh_type == SHT_PROGBITS)
            return elf_rawdata(section, NULL);
    }
    return NULL;
}

/* Unpacks an xz stream. NULL: it is none, or too large. */
static uint8_t *unpack(const Elf_Data *packed, size_t *ret_size)
{
    size_t capacity = packed->d_size, used = 0;
    AUTO_FREE uint8_t *bytes = NULL;

    while (capacity < UNPACKED_MAX) {
        uint64_t memory = UNPACK_MEMORY_MAX;
        size_t read = 0;
        lzma_ret r;

        capacity = capacity * 4 < UNPACKED_MAX ? capacity * 4 : UNPACKED_MAX;
        free(bytes);
        bytes = malloc(capacity);
        if (!bytes)
            return NULL;
        used = 0;
        r = lzma_stream_buffer_decode(&memory, 0, NULL, packed->d_buf, &read, packed->d_size, bytes, &used,
                                      capacity);
        if (r == LZMA_OK) {
            *ret_size = used;
            return take_pointer(bytes);
        }
        if (r != LZMA_BUF_ERROR)
            return NULL;
    }
    return NULL;
}

Elf *debug_files_mini(struct elf_image *image)
{
    struct debug_files *files = files_of(image);
    Elf_Data *packed;
    size_t size;

    if (!files || files->looked_for_mini)
        return files ? files->mini : NULL;
    files->looked_for_mini = true;
    packed = find_debugdata(elf_image_elf(image));
    if (!packed || !packed->d_buf || packed->d_size == 0)
        return NULL;
    files->unpacked = unpack(packed, &size);
    if (files->unpacked)
        files->mini = elf_memory((char *)files->unpacked, size);
    return files->mini;
}
