/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/elf/elf_image.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>

#include "base/error.h"
#include "base/foreign_file.h"
#include "image/arch/elf_machine.h"
#include "image/elf/elf_file.h"
#include "image/elf/elf_parts.h"

/* More than this in one segment is no program but a crafted file: the largest browsers have 0.25 GB. */
#define SEGMENT_MAX ((uint64_t)2 << 30)
/* Segments may overlap in a crafted file: all that is read of them together is at most so many times the
 * file. */
#define READ_FACTOR_MAX 4
/* Linux runs nothing with more of them (load_elf_phdrs() in fs/binfmt_elf.c: 64 KiB). */
#define PROGRAM_HEADERS_MAX (65536 / sizeof(Elf64_Phdr))
#define PAGE_MASK ((uint64_t)4095)

struct segment {
    uint64_t address;
    uint64_t offset;
    uint64_t size; /* bytes in the file, already cut to what the file has */
    bool executable;
    uint8_t *bytes; /* its contents once they were wanted */
};

struct elf_image {
    char *name;
    int fd;
    Elf *elf; /* NULL: not opened yet, or put away (elf_image_forget) */
    struct elf_file file;
    struct segment *segments; /* PT_LOAD */
    size_t segment_count;
    uint64_t read_size; /* of all segments that were read */
    struct elf_image_facts facts;
    char *debug_root; /* NULL: none */
    char *given_up;   /* NULL: nothing */
    struct kept_part {
        void *data;
        void (*release)(void *);
    } parts[IMAGE_PART_COUNT];
};

/* ---------------------------------------------------------------------------------------------- reading */

/* Reads `size` bytes at `offset`, all or nothing: 0, -EIO, or -EBADMSG where the file ends too early. */
static int read_at(int fd, void *buffer, size_t size, uint64_t offset)
{
    size_t done = 0;

    while (done < size) {
        ssize_t got = pread(fd, (char *)buffer + done, size - done, (off_t)(offset + done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -EIO;
        if (got == 0)
            return -EBADMSG;
        done += (size_t)got;
    }
    return 0;
}

static int read_segment(struct elf_image *image, struct segment *segment)
{
    AUTO_FREE uint8_t *bytes = NULL;
    int r;

    if (segment->size > SEGMENT_MAX ||
        image->read_size + segment->size > READ_FACTOR_MAX * image->file.plausible)
        return -EFBIG;
    bytes = malloc(segment->size);
    if (!bytes)
        return -ENOMEM;
    r = read_at(image->fd, bytes, segment->size, segment->offset);
    if (r < 0)
        return r;
    image->read_size += segment->size;
    segment->bytes = take_pointer(bytes);
    return 0;
}

/* ---------------------------------------------------------------------------------------------- segments */

/* Keeps a PT_LOAD; what it claims beyond the end of the file is cut off, a range that wraps is dropped. */
static void add_segment(struct elf_image *image, const GElf_Phdr *header)
{
    struct segment *segment = &image->segments[image->segment_count];
    uint64_t size = header->p_filesz;

    if (header->p_offset >= image->file.size || size == 0)
        return;
    if (size > image->file.size - header->p_offset)
        size = image->file.size - header->p_offset;
    if (header->p_vaddr > UINT64_MAX - size)
        return;
    *segment = (struct segment){
        .address = header->p_vaddr,
        .offset = header->p_offset,
        .size = size,
        .executable = header->p_flags & PF_X,
    };
    image->segment_count++;
}

static const struct segment *segment_at(const struct elf_image *image, uint64_t address)
{
    for (size_t i = 0; i < image->segment_count; i++) {
        const struct segment *segment = &image->segments[i];

        if (address >= segment->address && address - segment->address < segment->size)
            return segment;
    }
    return NULL;
}

int elf_image_file_offset(const struct elf_image *image, uint64_t address, uint64_t *ret_offset)
{
    const struct segment *segment = segment_at(image, address);

    if (!segment)
        return -ENOENT;
    *ret_offset = segment->offset + (address - segment->address);
    return 0;
}

/* How well a mapping at `file_offset` fits the segment; 0: not at all. The last page of one segment and the
 * first of the next can be the same page of the file, hence: executable segments first, then those that begin
 * there. */
static int mapping_fit(const struct segment *segment, uint64_t file_offset)
{
    uint64_t first = segment->offset & ~PAGE_MASK;

    if (file_offset < first || file_offset - first >= segment->size + (segment->offset - first))
        return 0;
    return 1 + (file_offset == first) + 2 * segment->executable;
}

int elf_image_load_bias(const struct elf_image *image, uint64_t map_start, uint64_t file_offset,
                        uint64_t *ret_bias)
{
    const struct segment *best = NULL;

    for (size_t i = 0; i < image->segment_count; i++) {
        const struct segment *segment = &image->segments[i];

        if (mapping_fit(segment, file_offset) > (best ? mapping_fit(best, file_offset) : 0))
            best = segment;
    }
    if (!best)
        return -ENOENT;
    *ret_bias = map_start - (best->address - best->offset + file_offset);
    return 0;
}

const uint8_t *elf_image_bytes(struct elf_image *image, uint64_t address, size_t *ret_size)
{
    struct segment *segment = (struct segment *)segment_at(image, address);

    if (!segment || (!segment->bytes && read_segment(image, segment) < 0))
        return NULL;
    *ret_size = segment->size - (address - segment->address);
    return segment->bytes + (address - segment->address);
}

const uint8_t *elf_image_code(struct elf_image *image, uint64_t address, size_t *ret_size)
{
    const struct segment *segment = segment_at(image, address);

    return segment && segment->executable ? elf_image_bytes(image, address, ret_size) : NULL;
}

bool elf_image_segment(const struct elf_image *image, size_t index, struct address_range *ret_range,
                       bool *ret_executable)
{
    const struct segment *segment;

    if (index >= image->segment_count)
        return false;
    segment = &image->segments[index];
    *ret_range = (struct address_range){segment->address, segment->address + segment->size};
    *ret_executable = segment->executable;
    return true;
}

/* ---------------------------------------------------------------------------------------------- opening */

static int refuse_not_elf(const struct elf_image *image, struct error *err)
{
    char start[2] = "";

    if (read_at(image->fd, start, sizeof(start), 0) == 0 && memcmp(start, "#!", 2) == 0)
        return error_say(err, -ENOEXEC, "cannot trace %s: a script, not an ELF file (name its interpreter)",
                         image->name);
    return error_say(err, -ENOEXEC, "cannot trace %s: not an ELF file (name a compiled program)",
                     image->name);
}

/* What the file is, if it is no program or library that can be traced. */
static int refuse_kind(const struct elf_image *image, const Elf64_Ehdr *header, struct error *err)
{
    if (!elf_is_of_machine(header->e_machine))
        return error_say(err, -ENOTSUP,
                         "cannot trace %s: compiled for another kind of processor (only x86-64 is supported)",
                         image->name);
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
        return error_say(err, -ENOTSUP,
                         "cannot trace %s: a 32-bit image (only 64-bit programs are supported)", image->name);
    if (header->e_type != ET_EXEC && header->e_type != ET_DYN)
        return error_say(err, -ENOTSUP, "cannot trace %s: %s (name a program or a shared library)",
                         image->name,
                         header->e_type == ET_REL    ? "an object file that is not linked"
                         : header->e_type == ET_CORE ? "a core dump"
                                                     : "neither a program nor a shared library");
    return 0;
}

static int refuse_size(const struct elf_image *image, struct error *err)
{
    char line[sizeof(err->message)];

    if (!image->file.tables)
        return error_say(err, -EFBIG, "cannot trace %s: more headers than any program has", image->name);
    elf_file_say_limit(image->name, "symbols and other tables", image->file.tables, ELF_FILE_TABLES_MAX, line,
                       sizeof(line));
    return error_say(err, -EFBIG, "cannot trace %s", line);
}

static int look(struct elf_image *image, struct error *err)
{
    int r = elf_file_look(image->fd, &image->file);

    if (r == -ENOEXEC)
        return refuse_not_elf(image, err);
    if (r == -EFBIG)
        return refuse_size(image, err);
    if (r < 0 && r != -ENOTSUP)
        return error_set(err, r, NULL, "cannot trace %s", image->name);
    return refuse_kind(image, &image->file.header, err);
}

static int read_segments(struct elf_image *image, size_t *ret_count, struct error *err)
{
    size_t count;
    GElf_Phdr header;

    if (elf_getphdrnum(image->elf, &count) < 0 || count == 0)
        return error_say(err, -EBADMSG, "cannot trace %s: it has no program headers (is the file complete?)",
                         image->name);
    if (count > PROGRAM_HEADERS_MAX)
        count = PROGRAM_HEADERS_MAX;
    image->segments = calloc(count, sizeof(*image->segments));
    if (!image->segments)
        return error_no_memory(err);
    for (size_t i = 0; i < count; i++)
        if (gelf_getphdr(image->elf, (int)i, &header) && header.p_type == PT_LOAD)
            add_segment(image, &header);
    *ret_count = count;
    return 0;
}

static int open_elf(struct elf_image *image, struct error *err)
{
    size_t segments = 0;
    int r = look(image, err);

    if (r < 0)
        return r;
    if (!elf_image_elf(image))
        return refuse_not_elf(image, err);
    image->facts.entry = image->file.header.e_entry;
    image->facts.pie = image->file.header.e_type == ET_DYN;
    r = read_segments(image, &segments, err);
    return r < 0 ? r : elf_facts_read(image, image->elf, segments, &image->facts, err);
}

int elf_image_open_fd(int fd, const char *name, struct elf_image **ret_image, struct error *err)
{
    AUTO_ELF_IMAGE struct elf_image *image = calloc(1, sizeof(*image));
    int r;

    if (!image)
        return error_no_memory(err);
    image->name = strdup(name);
    image->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (!image->name)
        return error_no_memory(err);
    if (image->fd < 0)
        return error_set(err, -errno, NULL, "cannot trace %s", name);
    r = open_elf(image, err);
    if (r < 0)
        return r;
    *ret_image = take_pointer(image);
    return 0;
}

int elf_image_open(const char *path, struct elf_image **ret_image, struct error *err)
{
    AUTO_CLOSE int fd = foreign_file_open(path);

    if (fd == -EINVAL)
        return error_say(err, -ENOEXEC, "cannot trace %s: not a regular file (name a compiled program)",
                         path);
    if (fd < 0)
        return error_set(err, fd, NULL, "cannot trace %s", path);
    return elf_image_open_fd(fd, path, ret_image, err);
}

void elf_image_forget(struct elf_image *image)
{
    if (!image)
        return;
    for (size_t i = 0; i < IMAGE_PART_COUNT; i++) {
        if (image->parts[i].release)
            image->parts[i].release(image->parts[i].data);
        image->parts[i] = (struct kept_part){0};
    }
    elf_end(image->elf);
    image->elf = NULL;
    for (size_t i = 0; i < image->segment_count; i++) {
        free(image->segments[i].bytes);
        image->segments[i].bytes = NULL;
    }
    image->read_size = 0;
}

void elf_image_free(struct elf_image *image)
{
    if (!image)
        return;
    elf_image_forget(image);
    free(image->debug_root);
    free(image->given_up);
    if (image->fd >= 0)
        close(image->fd);
    free(image->segments);
    free(image->facts.build_id);
    free(image->facts.interpreter);
    free(image->name);
    free(image);
}

/* ---------------------------------------------------------------------------------------------- answers */

const struct elf_image_facts *elf_image_facts(const struct elf_image *image)
{
    return &image->facts;
}

int elf_image_set_debug_root(struct elf_image *image, const char *root)
{
    AUTO_FREE char *copy = strdup(root);

    if (!copy)
        return -ENOMEM;
    free(image->debug_root);
    image->debug_root = take_pointer(copy);
    return 0;
}

const char *elf_image_debug_root(const struct elf_image *image)
{
    return image->debug_root ? image->debug_root : "";
}

void *elf_image_part(const struct elf_image *image, enum image_part part)
{
    return image->parts[part].data;
}

void elf_image_keep_part(struct elf_image *image, enum image_part part, void *data, void (*release)(void *))
{
    image->parts[part] = (struct kept_part){data, release};
}

int elf_image_fd(const struct elf_image *image)
{
    return image->fd;
}

const char *elf_image_name(const struct elf_image *image)
{
    return image->name;
}

Elf *elf_image_elf(struct elf_image *image)
{
    if (!image->elf)
        image->elf = elf_file_begin(image->fd, &image->file);
    return image->elf;
}

bool elf_image_may_read_debug_info(struct elf_image *image)
{
    if (!image->facts.has_debug_info)
        return false;
    if (!elf_file_debug_fits(&image->file)) {
        elf_image_give_up_debug(image, image->name, &image->file);
        return false;
    }
    return true;
}

void elf_image_give_up_debug(struct elf_image *image, const char *path, const struct elf_file *file)
{
    char line[512];

    elf_file_say_limit(path, "debug information", file->debug, ELF_FILE_DEBUG_MAX, line, sizeof(line));
    elf_image_give_up(image, line);
}

void elf_image_give_up(struct elf_image *image, const char *text)
{
    if (!image->given_up)
        image->given_up = strdup(text);
}

const char *elf_image_given_up(const struct elf_image *image)
{
    return image->given_up;
}

const char *elf_image_unwinds(const struct elf_image *image)
{
    const struct elf_image_facts *facts = &image->facts;

    if (facts->is_go)
        return "a go program";
    if (facts->is_rust)
        return "a rust program";
    if (facts->has_except_table)
        return "it has exception tables";
    if (facts->needs_unwinder)
        return "it uses the c++ or unwinding runtime";
    if (!facts->has_sections)
        return "it has no section headers, which would tell";
    return NULL;
}
