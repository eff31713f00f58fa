/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/elf/elf_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/foreign_file.h"

/* Numbers above the 16 bits of the file header are for object files with a section for each function. */
#define SECTIONS_MAX 65535u
/* Debug information and names are packed to a third, at best a tenth. */
#define UNPACK_RATIO_MAX 64u
#define UNPACK_ALWAYS ((uint64_t)1 << 20)
/* All sections together, unpacked, are at most so many times the file. */
#define UNPACKED_MOST 8

/* All of `size` bytes: 0, -EIO, or -EBADMSG where the file ends too early. */
static int read_all(int fd, void *buffer, size_t size, uint64_t offset)
{
    size_t done = 0;

    while (done < size) {
        ssize_t got = pread(fd, (char *)buffer + done, size - done, (off_t)(offset + done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -EIO : -EBADMSG;
        done += (size_t)got;
    }
    return 0;
}

/* ---------------------------------------------------------------------------------------------- adding up */

static void add(uint64_t *sum, uint64_t bytes)
{
    *sum = bytes > UINT64_MAX - *sum ? UINT64_MAX : *sum + bytes;
}

/* The part of a claimed range that is in the file: more is never read. */
static uint64_t in_file(const struct elf_file *file, uint64_t offset, uint64_t size)
{
    if (offset >= file->size)
        return 0;
    return size < file->size - offset ? size : file->size - offset;
}

/* What a section holds when it is unpacked: `size` when it is not packed. */
static uint64_t unpacked_size(int fd, struct elf_file *file, const Elf64_Shdr *section, uint64_t size)
{
    uint64_t unpacked = size;
    uint8_t head[12];
    Elf64_Chdr packed;

    if (section->sh_flags & SHF_COMPRESSED) {
        if (size >= sizeof(packed) && read_all(fd, &packed, sizeof(packed), section->sh_offset) == 0)
            unpacked = packed.ch_size;
    } else if (size >= sizeof(head) && read_all(fd, head, sizeof(head), section->sh_offset) == 0 &&
               memcmp(head, "ZLIB", 4) == 0) { /* .zdebug_* */
        unpacked = 0;
        for (size_t i = 4; i < sizeof(head); i++)
            unpacked = unpacked << 8 | head[i];
    }
    file->bomb |= unpacked > UNPACK_ALWAYS && unpacked / UNPACK_RATIO_MAX > size;
    return unpacked > size ? unpacked : size;
}

/* Debug information goes by its name: libdw looks for nothing else. */
static bool is_debug(const char *name)
{
    return strncmp(name, ".debug_", 7) == 0 || strncmp(name, ".zdebug_", 8) == 0 ||
           strncmp(name, ".gdb_index", 10) == 0 || strncmp(name, ".gnu.debuglto_", 14) == 0;
}

static void add_section(int fd, struct elf_file *file, const Elf64_Shdr *section, const Elf64_Shdr *names)
{
    uint64_t size = in_file(file, section->sh_offset, section->sh_size);
    char name[16] = "";

    if (section->sh_type == SHT_NOBITS || section->sh_type == SHT_NULL || !size)
        return;
    if (names && section->sh_name < names->sh_size && names->sh_offset <= file->size)
        if (pread(fd, name, sizeof(name) - 1, (off_t)(names->sh_offset + section->sh_name)) <= 0)
            name[0] = '\0';
    if (is_debug(name))
        add(&file->debug, unpacked_size(fd, file, section, size));
    else if (section->sh_type != SHT_PROGBITS || !(section->sh_flags & SHF_ALLOC))
        add(&file->tables, unpacked_size(fd, file, section, size));
}

/* ---------------------------------------------------------------------------------------------- headers */

static int read_section(int fd, const struct elf_file *file, uint64_t index, Elf64_Shdr *ret_section)
{
    return read_all(fd, ret_section, sizeof(*ret_section),
                    file->header.e_shoff + index * sizeof(*ret_section));
}

static int add_sections(int fd, struct elf_file *file, const Elf64_Shdr *first)
{
    const Elf64_Ehdr *header = &file->header;
    uint64_t count = header->e_shnum ? header->e_shnum : first->sh_size;
    uint64_t names = header->e_shstrndx == SHN_XINDEX ? first->sh_link : header->e_shstrndx;
    AUTO_FREE Elf64_Shdr *sections = NULL;
    int r;

    if (count > SECTIONS_MAX)
        return -EFBIG;
    if (header->e_shoff >= file->size)
        return 0; /* cut off: libelf sees none either */
    if (count > (file->size - header->e_shoff) / sizeof(*sections))
        count = (file->size - header->e_shoff) / sizeof(*sections);
    sections = calloc(count + 1, sizeof(*sections));
    if (!sections)
        return -ENOMEM;
    r = read_all(fd, sections, count * sizeof(*sections), header->e_shoff);
    for (uint64_t i = 0; r == 0 && i < count; i++)
        add_section(fd, file, &sections[i], names < count ? &sections[names] : NULL);
    return r;
}

static int add_segments(int fd, struct elf_file *file, const Elf64_Shdr *first)
{
    const Elf64_Ehdr *header = &file->header;
    uint64_t count = header->e_phnum == PN_XNUM ? first->sh_info : header->e_phnum;
    AUTO_FREE Elf64_Phdr *segments = NULL;

    if (count > UINT16_MAX)
        return -EFBIG;
    if (header->e_phoff >= file->size || count > (file->size - header->e_phoff) / sizeof(*segments))
        return 0; /* cut off: libelf reads none either */
    segments = calloc(count + 1, sizeof(*segments));
    if (!segments)
        return -ENOMEM;
    if (read_all(fd, segments, count * sizeof(*segments), header->e_phoff) < 0)
        return -EIO;
    for (uint64_t i = 0; i < count; i++)
        if (segments[i].p_type == PT_NOTE || segments[i].p_type == PT_DYNAMIC)
            add(&file->tables, in_file(file, segments[i].p_offset, segments[i].p_filesz));
    return 0;
}

/* ---------------------------------------------------------------------------------------------- the answer
 */

/* Whether so many bytes can come out of the file at all, and are not too many. */
static bool fits(const struct elf_file *file, uint64_t bytes, uint64_t limit)
{
    return bytes <= limit && bytes / UNPACKED_MOST <= file->plausible;
}

int elf_file_look(int fd, struct elf_file *ret_file)
{
    Elf64_Shdr first = {0};
    struct stat status;
    int r;

    *ret_file = (struct elf_file){0};
    if (fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode) || status.st_size < (off_t)sizeof(ret_file->header))
        return -ENOEXEC;
    ret_file->size = (uint64_t)status.st_size;
    ret_file->plausible = foreign_file_plausible(fd, &status);
    r = read_all(fd, &ret_file->header, sizeof(ret_file->header), 0);
    if (r < 0)
        return r;
    if (memcmp(ret_file->header.e_ident, ELFMAG, SELFMAG) != 0)
        return -ENOEXEC;
    if (ret_file->header.e_ident[EI_CLASS] != ELFCLASS64 || ret_file->header.e_ident[EI_DATA] != ELFDATA2LSB)
        return -ENOTSUP;
    if (ret_file->header.e_shoff)
        read_section(fd, ret_file, 0, &first); /* what is cut off counts as none */
    r = add_segments(fd, ret_file, &first);
    if (r == 0 && ret_file->header.e_shoff)
        r = add_sections(fd, ret_file, &first);
    if (r < 0)
        return r;
    return fits(ret_file, ret_file->tables, ELF_FILE_TABLES_MAX) ? 0 : -EFBIG;
}

bool elf_file_debug_fits(const struct elf_file *file)
{
    return !file->bomb && fits(file, file->debug, ELF_FILE_DEBUG_MAX);
}

Elf *elf_file_begin(int fd, struct elf_file *ret_file)
{
    if (elf_file_look(fd, ret_file) < 0)
        return NULL;
    elf_version(EV_CURRENT);
    return elf_begin(fd, ELF_C_READ, NULL);
}

static void spell_bytes(uint64_t bytes, char *text, size_t size)
{
    static const char *const units[] = {"KB", "MB", "GB", "TB", "PB", "EB"};
    double number = (double)bytes / 1024;
    size_t unit = 0;

    for (; number >= 1024 && unit + 1 < ARRAY_SIZE(units); unit++)
        number /= 1024;
    snprintf(text, size, "%.*f %s", number < 10, number, units[unit]);
}

void elf_file_say_limit(const char *name, const char *what, uint64_t bytes, uint64_t limit, char *text,
                        size_t size)
{
    char much[32], most[32];

    spell_bytes(bytes, much, sizeof(much));
    spell_bytes(limit, most, sizeof(most));
    if (bytes > limit)
        snprintf(text, size, "%s: %s of %s were not read (more than %s)", name, much, what, most);
    else
        snprintf(text, size, "%s: %s of %s were not read (more than the file can hold)", name, much, what);
}
