/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an image says about itself in its headers, its dynamic section, its notes and a few sections. */
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <gelf.h>
#include <limits.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "image/elf/elf_parts.h"

struct reading {
    const struct elf_image *image;
    Elf *elf;
    struct elf_image_facts *facts;
};

static int read_interpreter(struct reading *reading, const GElf_Phdr *header)
{
    AUTO_FREE char *path = NULL;

    if (reading->facts->interpreter || header->p_filesz == 0 || header->p_filesz > PATH_MAX)
        return 0;
    path = calloc(1, header->p_filesz + 1);
    if (!path)
        return -ENOMEM;
    if (pread(elf_image_fd(reading->image), path, header->p_filesz, (off_t)header->p_offset) ==
        (ssize_t)header->p_filesz)
        reading->facts->interpreter = take_pointer(path);
    return 0;
}

/* The string at `offset` of the table at link-time address `table`, cut to the buffer; "" when out of reach.
 */
static void read_dynamic_string(const struct reading *reading, uint64_t table, uint64_t offset, char *text,
                                size_t size)
{
    uint64_t place;
    ssize_t got;

    text[0] = '\0';
    if (offset > UINT64_MAX - table || elf_image_file_offset(reading->image, table + offset, &place) < 0)
        return;
    got = pread(elf_image_fd(reading->image), text, size - 1, (off_t)place);
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
static void read_dynamic(struct reading *reading, const GElf_Phdr *header, bool *ret_pie, bool *ret_soname)
{
    Elf_Data *data =
        elf_getdata_rawchunk(reading->elf, (int64_t)header->p_offset, header->p_filesz, ELF_T_DYN);
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
            reading->facts->relocates_code = true;
        else if (entry.d_tag == DT_SONAME)
            *ret_soname = true;
    }
    for (int i = 0; gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++) {
        if (entry.d_tag != DT_NEEDED)
            continue;
        read_dynamic_string(reading, strings, entry.d_un.d_val, name, sizeof(name));
        reading->facts->needs_unwinder |= is_unwinder(name);
    }
}

/* The build id that the Go linker writes: it says what the image is when the section headers are gone. */
static bool has_go_note(struct reading *reading, const GElf_Phdr *header)
{
    Elf_Data *data =
        elf_getdata_rawchunk(reading->elf, (int64_t)header->p_offset, header->p_filesz, ELF_T_NHDR);
    size_t at = 0, name, description;
    GElf_Nhdr note;

    while (data && (at = gelf_getnote(data, at, &note, &name, &description)) > 0)
        if (note.n_type == 4 && note.n_namesz == 4 && memcmp((char *)data->d_buf + name, "Go", 3) == 0)
            return true;
    return false;
}

static int read_segments(struct reading *reading, size_t count, struct error *err)
{
    bool is_pie = false, has_soname = false, is_dynamic_type = reading->facts->pie;
    GElf_Phdr header;

    for (size_t i = 0; i < count; i++) {
        if (!gelf_getphdr(reading->elf, (int)i, &header))
            continue;
        if (header.p_type == PT_INTERP && read_interpreter(reading, &header) < 0)
            return error_no_memory(err);
        if (header.p_type == PT_DYNAMIC)
            read_dynamic(reading, &header, &is_pie, &has_soname);
        if (header.p_type == PT_NOTE)
            reading->facts->is_go |= has_go_note(reading, &header);
    }
    /* libc.so.6 is a library with an interpreter; a static-pie program has none but says that it is a
     * program. */
    reading->facts->library = is_dynamic_type && !is_pie && (has_soname || !reading->facts->interpreter);
    reading->facts->is_static = !reading->facts->library && !reading->facts->interpreter;
    return 0;
}

/* rustc leaves its name in .comment, which survives strip. */
static bool mentions_rustc(Elf_Scn *section)
{
    Elf_Data *data = elf_rawdata(section, NULL);

    return data && data->d_buf && memmem(data->d_buf, data->d_size, "rustc version", strlen("rustc version"));
}

static bool defines_rust_personality(struct reading *reading, Elf_Scn *section, const GElf_Shdr *header)
{
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Sym symbol;

    if (!data)
        return false;
    for (int i = 0; gelf_getsym(data, i, &symbol); i++) {
        const char *name = elf_strptr(reading->elf, header->sh_link, symbol.st_name);

        if (name && symbol.st_shndx != SHN_UNDEF && strcmp(name, "rust_eh_personality") == 0)
            return true;
    }
    return false;
}

static void read_section(struct reading *reading, Elf_Scn *section, const GElf_Shdr *header, const char *name)
{
    struct elf_image_facts *facts = reading->facts;

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
        facts->is_rust = defines_rust_personality(reading, section, header);
}

static int read_sections(struct reading *reading, struct error *err)
{
    Elf_Scn *section = NULL;
    size_t names;
    const void *id;
    ssize_t id_size;

    if (elf_getshdrstrndx(reading->elf, &names) == 0) {
        while ((section = elf_nextscn(reading->elf, section))) {
            GElf_Shdr header;
            const char *name =
                gelf_getshdr(section, &header) ? elf_strptr(reading->elf, names, header.sh_name) : NULL;

            if (name)
                read_section(reading, section, &header, name);
            reading->facts->has_sections = true;
        }
    }
    id_size = dwelf_elf_gnu_build_id(reading->elf, &id);
    if (id_size <= 0 || id_size > 64)
        return 0;
    reading->facts->build_id = calloc(2, (size_t)id_size + 1);
    if (!reading->facts->build_id)
        return error_no_memory(err);
    for (ssize_t i = 0; i < id_size; i++)
        sprintf(reading->facts->build_id + 2 * i, "%02x", ((const uint8_t *)id)[i]);
    return 0;
}

int elf_facts_read(const struct elf_image *image, Elf *elf, size_t segment_count,
                   struct elf_image_facts *facts, struct error *err)
{
    struct reading reading = {image, elf, facts};
    int r = read_segments(&reading, segment_count, err);

    return r < 0 ? r : read_sections(&reading, err);
}
