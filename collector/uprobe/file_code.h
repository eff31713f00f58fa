/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which bytes of a file are code. The kernel places a probe wherever a private mapping of the file may become
 * executable, and that includes data that is read only for the moment, such as a table of addresses after
 * relocation: a breakpoint there would change an address. So nothing outside of executable segments gets a
 * probe.
 */
#ifndef TRACECTL_COLLECTOR_UPROBE_FILE_CODE_H
#define TRACECTL_COLLECTOR_UPROBE_FILE_CODE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>

/* The executable segments of an ELF file. All zero: every byte may be code. */
struct file_code {
    Elf64_Phdr *segments;
    size_t count;
};

/* Reads the segments of the file behind `fd`; of one that is not ELF every byte may be code. 0 or -ENOMEM. */
int file_code_read(int fd, struct file_code *ret_code);
void file_code_release(struct file_code *code);

/* Whether all bytes at these offsets in the file are code. */
bool file_code_has(const struct file_code *code, const unsigned long *offsets, size_t count);

#endif
