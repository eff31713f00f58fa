/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/elf/debug_files.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <lzma.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/array.h"
#include "base/foreign_file.h"
#include "image/arch/elf_machine.h"
#include "image/elf/elf_file.h"

#define DEBUG_DIRECTORY "/usr/lib/debug"
#define BUILD_ID_MAX 64
/* A .gnu_debugdata of the largest libraries unpacks to 20 MB; more than this is a bomb. */
#define UNPACKED_MAX ((size_t)64 << 20)
#define UNPACK_MEMORY_MAX ((uint64_t)128 << 20)
/* Files without a build id, whose sum is needed, come from small projects: this takes a quarter of a second.
 */
#define SUMMED_MAX ((uint64_t)256 << 20)

struct debug_file {
    int fd; /* -1 and NULLs: there is none */
    Elf *elf;
    char *path;
    bool debug_fits; /* its debug information may be read */
};

struct debug_files {
    bool looked_for_separate, looked_for_mini, looked_for_dwarf;
    struct debug_file separate;
    struct debug_file shared; /* of .gnu_debugaltlink */
    Dwarf *dwarf, *shared_dwarf;
    Elf *mini;
    uint8_t *unpacked; /* what `mini` reads from */
};

static void debug_file_release(struct debug_file *file)
{
    elf_end(file->elf);
    if (file->fd >= 0)
        close(file->fd);
    free(file->path);
    *file = (struct debug_file){.fd = -1};
}

/* Leaves none behind, so that its cleanup has nothing to release. */
static struct debug_file take_debug_file(struct debug_file *file)
{
    struct debug_file taken = *file;

    *file = (struct debug_file){.fd = -1};
    return taken;
}

static void release_files(void *part)
{
    struct debug_files *files = part;

    dwarf_end(files->dwarf);
    dwarf_end(files->shared_dwarf);
    debug_file_release(&files->separate);
    debug_file_release(&files->shared);
    elf_end(files->mini);
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
    files->separate.fd = files->shared.fd = -1;
    elf_image_keep_part(image, IMAGE_PART_DEBUG_FILES, files, release_files);
    return files;
}

/* ---------------------------------------------------------------------------------------------- belonging */

/* CRC-32 of the whole file, as .gnu_debuglink has it. */
static bool has_checksum(int fd, uint64_t size, uint32_t wanted)
{
    uint8_t buffer[65536];
    uLong checksum = crc32(0, NULL, 0);
    uint64_t at = 0;
    ssize_t got = 0;

    while (at < size && (got = pread(fd, buffer, sizeof(buffer), (off_t)at)) > 0) {
        checksum = crc32(checksum, buffer, (uInt)got);
        at += (uint64_t)got;
    }
    return at == size && checksum == wanted;
}

/* `candidate` is at `path`. `checksum` NULL: only the build id counts. */
static bool belongs(struct elf_image *image, const char *path, Elf *candidate, int fd,
                    const struct elf_file *file, const uint32_t *checksum)
{
    const void *id, *other;
    ssize_t size = dwelf_elf_gnu_build_id(elf_image_elf(image), &id),
            other_size = dwelf_elf_gnu_build_id(candidate, &other);
    char line[512];

    if (elf_kind(candidate) != ELF_K_ELF || !elf_is_of_machine(file->header.e_machine))
        return false;
    if (size > 0 && other_size > 0)
        return size == other_size && memcmp(id, other, (size_t)size) == 0;
    if (!checksum)
        return false;
    if (file->size <= SUMMED_MAX && file->plausible == file->size)
        return has_checksum(fd, file->size, *checksum);
    elf_file_say_limit(path, "debug information without a build id", file->size, SUMMED_MAX, line,
                       sizeof(line));
    elf_image_give_up(image, line);
    return false;
}

/* Opens the debug file at `path`, if it is one that may be read. Release with debug_file_release. */
static bool open_file(struct elf_image *image, const char *path, struct debug_file *ret_file,
                      struct elf_file *ret_head)
{
    CLEANUP(debug_file_release)
    struct debug_file file = {.fd = foreign_file_open_below(elf_image_debug_root(image), path)};
    char line[512];
    int r = file.fd < 0 ? -ENOENT : elf_file_look(file.fd, ret_head);

    if (r == -EFBIG) {
        elf_file_say_limit(path, "tables", ret_head->tables, ELF_FILE_TABLES_MAX, line, sizeof(line));
        elf_image_give_up(image, line);
    }
    if (r < 0)
        return false;
    file.elf = elf_file_begin(file.fd, ret_head);
    file.path = strdup(path);
    file.debug_fits = elf_file_debug_fits(ret_head);
    if (!file.elf || !file.path)
        return false;
    *ret_file = take_debug_file(&file);
    return true;
}

/* Takes the file at `path` if it is the image's. */
static bool try_file(struct elf_image *image, struct debug_files *files, const char *path,
                     const uint32_t *checksum)
{
    CLEANUP(debug_file_release) struct debug_file file = {.fd = -1};
    struct stat status, own;
    struct elf_file head;

    if (!open_file(image, path, &file, &head) || fstat(file.fd, &status) < 0 ||
        fstat(elf_image_fd(image), &own) < 0 ||
        (status.st_dev == own.st_dev && status.st_ino == own.st_ino) ||
        !belongs(image, path, file.elf, file.fd, &head, checksum))
        return false;
    if (!file.debug_fits)
        elf_image_give_up_debug(image, path, &head);
    files->separate = take_debug_file(&file);
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
    return files->separate.elf;
}

/* ---------------------------------------------------------------------------------------------- DWARF */

/* The path of the file that `link` names, seen from the one that has the link. */
static bool spell_shared(const char *from, const char *link, char *path, size_t size)
{
    const char *slash = *link == '/' ? NULL : strrchr(from, '/');
    int length = snprintf(path, size, "%.*s%s", slash ? (int)(slash - from + 1) : 0, from, link);

    return length > 0 && (size_t)length < size;
}

/* Opens what .gnu_debugaltlink of `dwarf` names, so that libdw does not look for it by itself: it would wait
 * for a FIFO, and believe all that the file says. False: there is a link and nothing to be had behind it. */
static bool open_shared(struct elf_image *image, struct debug_files *files, Dwarf *dwarf)
{
    const char *from = files->separate.path ? files->separate.path : elf_image_name(image), *link;
    const void *id, *other;
    ssize_t size = dwelf_dwarf_gnu_debugaltlink(dwarf, &link, &id);
    struct elf_file head;
    char path[PATH_MAX];

    if (size == 0)
        return true;
    if (size < 0 || !spell_shared(from, link, path, sizeof(path)) ||
        !open_file(image, path, &files->shared, &head) || !files->shared.debug_fits ||
        dwelf_elf_gnu_build_id(files->shared.elf, &other) != size || memcmp(id, other, (size_t)size) != 0)
        return false;
    files->shared_dwarf = dwarf_begin_elf(files->shared.elf, DWARF_C_READ, NULL);
    dwarf_setalt(dwarf, files->shared_dwarf);
    return files->shared_dwarf;
}

/* The file that has debug information which may be read. */
static Elf *elf_with_dwarf(struct elf_image *image, const struct debug_files *files)
{
    if (elf_image_facts(image)->has_debug_info)
        return elf_image_may_read_debug_info(image) ? elf_image_elf(image) : NULL;
    return debug_files_separate(image) && files->separate.debug_fits ? files->separate.elf : NULL;
}

Dwarf *debug_files_dwarf(struct elf_image *image)
{
    struct debug_files *files = files_of(image);
    char line[512];
    Elf *elf;

    if (!files || files->looked_for_dwarf)
        return files ? files->dwarf : NULL;
    files->looked_for_dwarf = true;
    elf = elf_with_dwarf(image, files);
    files->dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
    if (files->dwarf && !open_shared(image, files, files->dwarf)) {
        dwarf_end(files->dwarf);
        files->dwarf = NULL;
        snprintf(line, sizeof(line),
                 "%s: debug information was not read (its .gnu_debugaltlink leads nowhere)",
                 elf_image_name(image));
        elf_image_give_up(image, line);
    }
    return files->dwarf;
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
