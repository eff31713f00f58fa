/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/elf_image.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "image/elf_parts.h"

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
    Elf *elf;
    uint64_t file_size;
    struct segment *segments; /* PT_LOAD */
    size_t segment_count;
    uint64_t read_size; /* of all segments that were read */
    struct elf_image_facts facts;
    char *debug_root; /* NULL: none */
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

    if (segment->size > SEGMENT_MAX || image->read_size + segment->size > READ_FACTOR_MAX * image->file_size)
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

    if (header->p_offset >= image->file_size || size == 0)
        return;
    if (size > image->file_size - header->p_offset)
        size = image->file_size - header->p_offset;
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

int elf_image_address(const struct elf_image *image, uint64_t offset, uint64_t *ret_address)
{
    for (size_t i = 0; i < image->segment_count; i++) {
        const struct segment *segment = &image->segments[i];

        if (segment->executable && offset >= segment->offset && offset - segment->offset < segment->size) {
            *ret_address = segment->address + (offset - segment->offset);
            return 0;
        }
    }
    return -ENOENT;
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

/* ---------------------------------------------------------------------------------------------- facts */

static int read_interpreter(struct elf_image *image, const GElf_Phdr *header)
{
    AUTO_FREE char *path = NULL;

    if (image->facts.interpreter || header->p_filesz == 0 || header->p_filesz > PATH_MAX)
        return 0;
    path = calloc(1, header->p_filesz + 1);
    if (!path)
        return -ENOMEM;
    if (read_at(image->fd, path, header->p_filesz, header->p_offset) == 0)
        image->facts.interpreter = take_pointer(path);
    return 0;
}

/* The string at `offset` of the table at link-time address `table`, cut to the buffer; "" when out of reach.
 */
static void read_dynamic_string(const struct elf_image *image, uint64_t table, uint64_t offset, char *text,
                                size_t size)
{
    uint64_t place;
    ssize_t got;

    text[0] = '\0';
    if (offset > UINT64_MAX - table || elf_image_file_offset(image, table + offset, &place) < 0)
        return;
    got = pread(image->fd, text, size - 1, (off_t)place);
    text[got > 0 ? got : 0] = '\0';
}

static bool is_unwinder(const char *library)
{
    static const char *const prefixes[] = {"libstdc++.so", "libc++.so", "libgcc_s.so", "libunwind.so"};

    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
        if (strncmp(library, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* Reads PT_DYNAMIC. Returns by `ret_*` what decides between program and library. */
static void read_dynamic(struct elf_image *image, const GElf_Phdr *header, bool *ret_pie, bool *ret_soname)
{
    Elf_Data *data = elf_getdata_rawchunk(image->elf, (int64_t)header->p_offset, header->p_filesz, ELF_T_DYN);
    uint64_t strings = 0;
    GElf_Dyn entry;
    char name[64];

    if (!data)
        return;
    for (int i = 0; gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++) {
        if (entry.d_tag == DT_STRTAB)
            strings = entry.d_un.d_ptr;
        else if (entry.d_tag == DT_FLAGS_1)
            *ret_pie = entry.d_un.d_val & DF_1_PIE;
        else if (entry.d_tag == DT_TEXTREL || (entry.d_tag == DT_FLAGS && entry.d_un.d_val & DF_TEXTREL))
            image->facts.relocates_code = true;
        else if (entry.d_tag == DT_SONAME)
            *ret_soname = true;
    }
    for (int i = 0; gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++) {
        if (entry.d_tag != DT_NEEDED)
            continue;
        read_dynamic_string(image, strings, entry.d_un.d_val, name, sizeof(name));
        image->facts.needs_unwinder |= is_unwinder(name);
    }
}

/* The build id that the Go linker writes: it says what the image is when the section headers are gone. */
static bool has_go_note(struct elf_image *image, const GElf_Phdr *header)
{
    Elf_Data *data =
        elf_getdata_rawchunk(image->elf, (int64_t)header->p_offset, header->p_filesz, ELF_T_NHDR);
    size_t at = 0, name, description;
    GElf_Nhdr note;

    while (data && (at = gelf_getnote(data, at, &note, &name, &description)) > 0)
        if (note.n_type == 4 && note.n_namesz == 4 && memcmp((char *)data->d_buf + name, "Go", 3) == 0)
            return true;
    return false;
}

/* Reads the program headers: segments first, since the dynamic section's addresses are found through them. */
static int read_segments(struct elf_image *image, struct error *err)
{
    bool is_pie = false, has_soname = false, is_dynamic_type = image->facts.pie;
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
    for (size_t i = 0; i < count; i++) {
        if (!gelf_getphdr(image->elf, (int)i, &header))
            continue;
        if (header.p_type == PT_INTERP && read_interpreter(image, &header) < 0)
            return error_no_memory(err);
        if (header.p_type == PT_DYNAMIC)
            read_dynamic(image, &header, &is_pie, &has_soname);
        if (header.p_type == PT_NOTE)
            image->facts.is_go |= has_go_note(image, &header);
    }
    /* libc.so.6 is a library with an interpreter; a static-pie program has none but says that it is a
     * program. */
    image->facts.library = is_dynamic_type && !is_pie && (has_soname || !image->facts.interpreter);
    image->facts.is_static = !image->facts.library && !image->facts.interpreter;
    return 0;
}

/* rustc leaves its name in .comment, which survives strip. */
static bool mentions_rustc(Elf_Scn *section)
{
    Elf_Data *data = elf_rawdata(section, NULL);

    return data && data->d_buf && memmem(data->d_buf, data->d_size, "rustc version", strlen("rustc version"));
}

static bool defines_rust_personality(struct elf_image *image, Elf_Scn *section, const GElf_Shdr *header)
{
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Sym symbol;

    if (!data)
        return false;
    for (int i = 0; gelf_getsym(data, i, &symbol); i++) {
        const char *name = elf_strptr(image->elf, header->sh_link, symbol.st_name);

        if (name && symbol.st_shndx != SHN_UNDEF && strcmp(name, "rust_eh_personality") == 0)
            return true;
    }
    return false;
}

static void read_section(struct elf_image *image, Elf_Scn *section, const GElf_Shdr *header, const char *name)
{
    struct elf_image_facts *facts = &image->facts;

    if (strcmp(name, ".gcc_except_table") == 0 || strncmp(name, ".gcc_except_table.", 18) == 0)
        facts->has_except_table = true;
    else if (strcmp(name, ".gopclntab") == 0 || strcmp(name, ".data.rel.ro.gopclntab") == 0 ||
             strcmp(name, ".note.go.buildid") == 0 || strcmp(name, ".go.buildinfo") == 0)
        facts->is_go = true;
    else if (strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0)
        facts->has_debug_info = header->sh_type != SHT_NOBITS && header->sh_size > 0;
    else if (strcmp(name, ".comment") == 0)
        facts->is_rust |= mentions_rustc(section);
    if (header->sh_type == SHT_SYMTAB)
        facts->has_symtab = true;
    if (header->sh_type == SHT_SYMTAB && !facts->is_rust)
        facts->is_rust = defines_rust_personality(image, section, header);
}

static int read_sections(struct elf_image *image, struct error *err)
{
    Elf_Scn *section = NULL;
    size_t names;
    const void *id;
    ssize_t id_size;

    if (elf_getshdrstrndx(image->elf, &names) == 0) {
        while ((section = elf_nextscn(image->elf, section))) {
            GElf_Shdr header;
            const char *name =
                gelf_getshdr(section, &header) ? elf_strptr(image->elf, names, header.sh_name) : NULL;

            if (name)
                read_section(image, section, &header, name);
            image->facts.has_sections = true;
        }
    }
    id_size = dwelf_elf_gnu_build_id(image->elf, &id);
    if (id_size <= 0 || id_size > 64)
        return 0;
    image->facts.build_id = calloc(2, (size_t)id_size + 1);
    if (!image->facts.build_id)
        return error_no_memory(err);
    for (ssize_t i = 0; i < id_size; i++)
        sprintf(image->facts.build_id + 2 * i, "%02x", ((const uint8_t *)id)[i]);
    return 0;
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

static int check_header(struct elf_image *image, struct error *err)
{
    GElf_Ehdr header;

    if (elf_kind(image->elf) != ELF_K_ELF || !gelf_getehdr(image->elf, &header))
        return refuse_not_elf(image, err);
    if (header.e_machine != EM_X86_64)
        return error_say(err, -ENOTSUP,
                         "cannot trace %s: compiled for another kind of processor (only x86-64 is supported)",
                         image->name);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
        return error_say(err, -ENOTSUP,
                         "cannot trace %s: a 32-bit image (only 64-bit programs are supported)", image->name);
    if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
        return error_say(err, -ENOTSUP, "cannot trace %s: %s (name a program or a shared library)",
                         image->name,
                         header.e_type == ET_REL    ? "an object file that is not linked"
                         : header.e_type == ET_CORE ? "a core dump"
                                                    : "neither a program nor a shared library");
    image->facts.entry = header.e_entry;
    image->facts.pie = header.e_type == ET_DYN;
    return 0;
}

static int open_elf(struct elf_image *image, struct error *err)
{
    struct stat status;
    int r;

    if (fstat(image->fd, &status) < 0)
        return error_set(err, -errno, NULL, "cannot trace %s", image->name);
    if (!S_ISREG(status.st_mode))
        return error_say(err, -ENOEXEC, "cannot trace %s: not a regular file (name a compiled program)",
                         image->name);
    image->file_size = (uint64_t)status.st_size;
    elf_version(EV_CURRENT);
    image->elf = elf_begin(image->fd, ELF_C_READ, NULL);
    if (!image->elf)
        return refuse_not_elf(image, err);
    r = check_header(image, err);
    if (r < 0)
        return r;
    r = read_segments(image, err);
    if (r < 0)
        return r;
    return read_sections(image, err);
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
    /* O_NONBLOCK: a FIFO must be refused, not waited for. */
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return error_set(err, -errno, NULL, "cannot trace %s", path);
    return elf_image_open_fd(fd, path, ret_image, err);
}

void elf_image_free(struct elf_image *image)
{
    if (!image)
        return;
    for (size_t i = 0; i < IMAGE_PART_COUNT; i++)
        if (image->parts[i].release)
            image->parts[i].release(image->parts[i].data);
    free(image->debug_root);
    elf_end(image->elf);
    if (image->fd >= 0)
        close(image->fd);
    for (size_t i = 0; i < image->segment_count; i++)
        free(image->segments[i].bytes);
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

Elf *elf_image_elf(const struct elf_image *image)
{
    return image->elf;
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
