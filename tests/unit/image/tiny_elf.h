/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Hand-made ELF images of less than 2 KiB for the tests of image/ and collector/plan/: one executable
 * segment, a .text, a .symtab, and what a test asks for. Loaded at TINY_BASE; .text begins at TINY_TEXT.
 */
#ifndef TRACECTL_TESTS_TINY_ELF_H
#define TRACECTL_TESTS_TINY_ELF_H

#include <elf.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TINY_BASE 0x400000u
#define TINY_TEXT_OFFSET 0x200u
#define TINY_TEXT (TINY_BASE + TINY_TEXT_OFFSET)
#define TINY_INTERPRETER_OFFSET 0x180u
#define TINY_MAX 2048u

struct tiny_symbol {
    const char *name;
    uint64_t offset; /* from TINY_TEXT */
    uint64_t size;
    unsigned char info; /* ELF64_ST_INFO */
};

struct tiny_elf {
    const void *text;
    size_t text_size; /* up to 512 bytes */
    const struct tiny_symbol *symbols;
    size_t symbol_count;
    const char *interpreter;   /* NULL: a static program */
    const char *extra_section; /* the name of one more section, for example .gopclntab */
    uint64_t entry;
    uint16_t machine; /* 0: EM_X86_64 */
    uint16_t type;    /* 0: ET_EXEC */
};

enum { TINY_NULL, TINY_SECTION_TEXT, TINY_SYMTAB, TINY_STRTAB, TINY_SHSTRTAB, TINY_EXTRA, TINY_SECTIONS };

static inline size_t tiny_append(uint8_t *image, size_t *size, const void *data, size_t length)
{
    size_t at = (*size + 7) & ~(size_t)7;

    memcpy(image + at, data, length);
    *size = at + length;
    return at;
}

static inline size_t tiny_name(char *table, size_t *size, const char *name)
{
    size_t at = *size;

    memcpy(table + at, name, strlen(name) + 1);
    *size = at + strlen(name) + 1;
    return at;
}

static inline void tiny_headers(const struct tiny_elf *tiny, uint8_t *image, size_t sections_at, size_t size)
{
    Elf64_Ehdr *header = (Elf64_Ehdr *)image;
    Elf64_Phdr *segments = (Elf64_Phdr *)(image + sizeof(*header));
    const char *interpreter = tiny->interpreter ? tiny->interpreter : "";

    *header = (Elf64_Ehdr){
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = tiny->type ? tiny->type : ET_EXEC,
        .e_machine = tiny->machine ? tiny->machine : EM_X86_64,
        .e_version = EV_CURRENT,
        .e_entry = tiny->entry,
        .e_phoff = sizeof(*header),
        .e_shoff = sections_at,
        .e_ehsize = sizeof(*header),
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = tiny->interpreter ? 2 : 1,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = TINY_SECTIONS,
        .e_shstrndx = TINY_SHSTRTAB,
    };
    segments[0] = (Elf64_Phdr){PT_LOAD, PF_R | PF_X, 0, TINY_BASE, TINY_BASE, size, size, 4096};
    segments[1] = (Elf64_Phdr){PT_INTERP,
                               PF_R,
                               TINY_INTERPRETER_OFFSET,
                               TINY_BASE + TINY_INTERPRETER_OFFSET,
                               TINY_BASE + TINY_INTERPRETER_OFFSET,
                               strlen(interpreter) + 1,
                               strlen(interpreter) + 1,
                               1};
    memcpy(image + TINY_INTERPRETER_OFFSET, interpreter, strlen(interpreter) + 1);
}

/* Writes the image into `image` of TINY_MAX bytes. Returns its size. */
static inline size_t tiny_elf_build(const struct tiny_elf *tiny, uint8_t *image)
{
    Elf64_Shdr sections[TINY_SECTIONS] = {0};
    Elf64_Sym symbols[16] = {0};
    char names[256] = "", section_names[128] = "";
    size_t names_size = 1, section_names_size = 1, size = TINY_TEXT_OFFSET + tiny->text_size, at;

    memset(image, 0, TINY_MAX);
    memcpy(image + TINY_TEXT_OFFSET, tiny->text, tiny->text_size);
    for (size_t i = 0; i < tiny->symbol_count; i++)
        symbols[i + 1] = (Elf64_Sym){
            .st_name = (Elf64_Word)tiny_name(names, &names_size, tiny->symbols[i].name),
            .st_info = tiny->symbols[i].info,
            .st_shndx = TINY_SECTION_TEXT,
            .st_value = TINY_TEXT + tiny->symbols[i].offset,
            .st_size = tiny->symbols[i].size,
        };
#define TINY_SECTION(index, name, ...) \
    sections[index] = (Elf64_Shdr){ \
        .sh_name = (Elf64_Word)tiny_name(section_names, &section_names_size, name), __VA_ARGS__}
    TINY_SECTION(TINY_SECTION_TEXT, ".text", .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                 .sh_addr = TINY_TEXT, .sh_offset = TINY_TEXT_OFFSET, .sh_size = tiny->text_size,
                 .sh_addralign = 1);
    at = tiny_append(image, &size, symbols, (tiny->symbol_count + 1) * sizeof(*symbols));
    TINY_SECTION(TINY_SYMTAB, ".symtab", .sh_type = SHT_SYMTAB, .sh_offset = at, .sh_size = size - at,
                 .sh_link = TINY_STRTAB, .sh_info = 1, .sh_entsize = sizeof(*symbols), .sh_addralign = 8);
    at = tiny_append(image, &size, names, names_size);
    TINY_SECTION(TINY_STRTAB, ".strtab", .sh_type = SHT_STRTAB, .sh_offset = at, .sh_size = names_size,
                 .sh_addralign = 1);
    TINY_SECTION(TINY_EXTRA, tiny->extra_section ? tiny->extra_section : ".extra", .sh_type = SHT_PROGBITS,
                 .sh_flags = SHF_ALLOC, .sh_addr = TINY_BASE, .sh_size = 16, .sh_addralign = 1);
    TINY_SECTION(TINY_SHSTRTAB, ".shstrtab", .sh_type = SHT_STRTAB, .sh_addralign = 1);
#undef TINY_SECTION
    sections[TINY_SHSTRTAB].sh_offset = tiny_append(image, &size, section_names, section_names_size);
    sections[TINY_SHSTRTAB].sh_size = section_names_size;
    at = tiny_append(image, &size, sections, sizeof(sections));
    tiny_headers(tiny, image, at, size);
    return size;
}

/* A descriptor of a file in memory that holds `size` bytes. */
static inline int tiny_file(const void *data, size_t size)
{
    int fd = memfd_create("tiny", MFD_CLOEXEC);

    if (fd >= 0 && write(fd, data, size) != (ssize_t)size) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static inline int tiny_elf_file(const struct tiny_elf *tiny)
{
    uint8_t image[TINY_MAX];

    return tiny_file(image, tiny_elf_build(tiny, image));
}

#endif
