/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An executable or shared library on disk: what it says about itself before any of its functions is looked
 * at.
 *
 * The file is untrusted input. It is read, never mapped, so that a file that is truncated meanwhile gives an
 * error and not a SIGBUS. Addresses are link-time virtual addresses (what nm prints); file offsets are what a
 * uprobe wants. Functions return 0 or a negative errno; those with a struct error fill it on failure.
 */
#ifndef TRACECTL_IMAGE_ELF_ELF_IMAGE_H
#define TRACECTL_IMAGE_ELF_ELF_IMAGE_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct error;

struct elf_image;

struct elf_image_facts {
    char *build_id;        /* lower-case hexadecimal, NULL when the image has none */
    char *interpreter;     /* PT_INTERP, NULL for libraries and static programs */
    uint64_t entry;        /* e_entry, 0 when there is none */
    bool pie;              /* ET_DYN: loaded anywhere (position-independent programs and libraries) */
    bool library;          /* ET_DYN without DF_1_PIE and without interpreter, but with a dynamic section */
    bool is_static;        /* a program that needs no dynamic linker (static and static-pie) */
    bool needs_unwinder;   /* DT_NEEDED names libstdc++, libc++ or libgcc_s */
    bool has_except_table; /* .gcc_except_table: some frame of it catches or cleans up */
    bool is_go;
    bool is_rust;
    bool has_debug_info; /* .debug_info (or .zdebug_info) is in the file itself */
    bool has_symtab;     /* .symtab is in the file itself */
    bool relocates_code; /* DT_TEXTREL: the dynamic linker writes into its code */
    bool has_sections;   /* false: section headers were cut off, and what they tell is not known */
};

/* Opens the image at `path`. -ENOEXEC: not an ELF file; -ENOTSUP: ELF, but not x86-64 ELF64 program or
 * library. */
int elf_image_open(const char *path, struct elf_image **ret_image, struct error *err);

/* The same from a descriptor, of which a duplicate is kept; `name` is used in messages. */
int elf_image_open_fd(int fd, const char *name, struct elf_image **ret_image, struct error *err);

/* The descriptor that it is read from, which is the image's. */
int elf_image_fd(const struct elf_image *image);

/* Releases the image and all it handed out (NULL is fine). */
void elf_image_free(struct elf_image *image);

DEFINE_CLEANUP(cleanup_elf_image, struct elf_image *, elf_image_free)
#define AUTO_ELF_IMAGE CLEANUP(cleanup_elf_image)

/* Where the file system begins whose separate debug files belong to the image: "/proc/PID/root" for a process
 * in a container; "", which is the default, is our own. To be set before functions or lines are asked for. */
int elf_image_set_debug_root(struct elf_image *image, const char *root);

/* Puts away all that can be read again from the file: contents of segments and sections, debug information.
 * Whatever was borrowed of it, names of source files among others, is gone; the facts stay. NULL is fine. */
void elf_image_forget(struct elf_image *image);

/* Borrowed, valid until elf_image_free. */
const struct elf_image_facts *elf_image_facts(const struct elf_image *image);
const char *elf_image_name(const struct elf_image *image);

/* Valid until elf_image_forget. NULL: the file has been changed and cannot be read any more, which libelf's
 * functions take for a file without anything. */
Elf *elf_image_elf(struct elf_image *image);

/* What was not read of the image or its debug files because it is too large to be believed or to be kept, as
 * a line that begins with the file's name; NULL: nothing so far. Borrowed, valid until elf_image_free. */
const char *elf_image_given_up(const struct elf_image *image);

/* The place in the file of the byte that is loaded at `address`. -ENOENT: no PT_LOAD has it in the file. */
int elf_image_file_offset(const struct elf_image *image, uint64_t address, uint64_t *ret_offset);

/* What is added to link-time addresses in a process that maps file offset `file_offset` of this image at
 * `map_start` (one line of /proc/PID/maps; both are page multiples). -ENOENT: no PT_LOAD covers that offset.
 */
int elf_image_load_bias(const struct elf_image *image, uint64_t map_start, uint64_t file_offset,
                        uint64_t *ret_bias);

/* The bytes that the file holds for `address` and, in `*ret_size`, how many follow up to the end of its
 * segment in the file. Borrowed. NULL: in no segment, or it cannot be read. Segments are read when first
 * wanted, hence not for several threads at once. Relocations are not applied. */
const uint8_t *elf_image_bytes(struct elf_image *image, uint64_t address, size_t *ret_size);

/* The same for addresses in executable segments; NULL for others. */
const uint8_t *elf_image_code(struct elf_image *image, uint64_t address, size_t *ret_size);

/* Why an exception or a panic may be unwound through frames of this image, in a few words; NULL when it may
 * not. */
const char *elf_image_unwinds(const struct elf_image *image);

#endif
