/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an ELF file asks of whoever reads it, before libelf and libdw believe it.
 *
 * They allocate and read what headers claim: sections of terabytes in a file that is a hole, a thousand
 * sections that are all the same gigabyte, a kilobyte that unpacks to gigabytes. Here the headers are read in
 * bounded pieces and added up.
 */
#ifndef TRACECTL_IMAGE_ELF_ELF_FILE_H
#define TRACECTL_IMAGE_ELF_ELF_FILE_H

#include <elf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

/* The most that is read, and unpacked, of one file: symbols, names, relocations, notes and the like; debug
 * information. The largest browsers have 0.3 GB of the former. */
#define ELF_FILE_TABLES_MAX ((uint64_t)1 << 30)
#define ELF_FILE_DEBUG_MAX ((uint64_t)1 << 30)

struct elf_file {
    Elf64_Ehdr header;
    uint64_t size;      /* st_size */
    uint64_t plausible; /* foreign_file_plausible() */
    uint64_t tables; /* bytes of all sections and segments but code, data and debug information, unpacked */
    uint64_t debug;  /* bytes of debug information, unpacked */
    bool bomb;       /* some section claims to unpack to more than packers can achieve */
};

/* Reads the headers of the file behind `fd`. -ENOEXEC: not an ELF file, or not a regular one; -ENOTSUP: not
 * ELF64 for little-endian machines: only `header` is set; -EFBIG: its headers claim more than programs have
 * or than the limits allow, and libelf must not see it; or an error of reading. */
int elf_file_look(int fd, struct elf_file *ret_file);

/* Whether libdw may read the file's debug information. */
bool elf_file_debug_fits(const struct elf_file *file);

/* The file as libelf sees it, if elf_file_look() finds nothing against it; its answer is in `*ret_file`.
 * NULL otherwise. The descriptor stays the caller's and must outlive it; elf_end() releases it. */
Elf *elf_file_begin(int fd, struct elf_file *ret_file);

/* "NAME: 8.0 TB of WHAT were not read (more than 1.0 GB)" into `text`, or where that is below the limit, that
 * they cannot be in the file. */
void elf_file_say_limit(const char *name, const char *what, uint64_t bytes, uint64_t limit, char *text,
                        size_t size);

#endif
