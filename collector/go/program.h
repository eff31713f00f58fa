/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One Go program's file while its goroutines are recorded: its probes, and the names of the places and
 * functions that records give the addresses of.
 */
#ifndef TRACECTL_COLLECTOR_GO_PROGRAM_H
#define TRACECTL_COLLECTOR_GO_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/go/places.h"
#include "collector/go/targets.h"
#include "image/elf/elf_image.h"
#include "store/streams/go_events.h"

struct error;

struct go_program_file;

struct go_program_options {
    enum go_detail detail;
    bool delays;          /* also the places where goroutines can be held up */
    uint8_t program;      /* number of the file in this recording */
    uint32_t first_probe; /* index of its first probe */
};

/* Reads `image`, which must outlive what is returned. -ENOENT: not made by Go; -ENOTSUP: its goroutines
 * cannot be recorded, the line says why. */
int go_program_read(struct elf_image *image, const struct go_program_options *options,
                    struct go_program_file **ret_file, struct error *err);
void go_program_free(struct go_program_file *file);

enum go_detail go_program_detail(const struct go_program_file *file);
const struct go_layout *go_program_layout(const struct go_program_file *file);
const struct go_targets *go_program_targets(const struct go_program_file *file);
uint8_t go_program_number(const struct go_program_file *file);
uint32_t go_program_first_probe(const struct go_program_file *file);

/* The target that probe `index` stands at; NULL: it is none of this file's. */
const struct go_target *go_program_target(const struct go_program_file *file, uint32_t index);

/* Enters the model of the program's own operations into the store, once. */
int go_program_store_model(struct go_program_file *file, struct trace_writer *writer, int64_t image_id,
                           struct error *err);

/* The name of a function or place that the store knows by `function_id`; NULL: none of this file's that was
 * asked for. */
const char *go_program_name(const struct go_program_file *file, uint32_t function_id);

/* The same with file and line, for requests by source (analyzer/go/places.h). */
struct go_place_source go_program_places(struct go_program_file *file);

/* The program's own operations, for coverage; to be freed with go_usages_rows_free. -ENOMEM. */
int go_program_usages(const struct go_program_file *file, struct go_usage_row **ret_rows, size_t *ret_count);

/* An operation's place in the source. */
struct go_source_place {
    uint32_t site;        /* function_id */
    enum go_op operation; /* what it is in the source: a Done that was inlined is an Add in the code */
    const char *text; /* "FILE:LINE" without directories, "?" where it is not known; as long as the file */
    bool inner;       /* it lies in package sync: a part of another operation */
};
/* The place behind (or at) the link-time address `place`; where that lies in a function of package sync that
 * only passes the call on, the one at `caller` (0: not known). Places are entered once. */
int go_program_place(struct go_program_file *file, struct trace_writer *writer, int64_t image_id,
                     uint64_t place, uint64_t caller, enum go_op operation, struct go_source_place *ret_place,
                     struct error *err);

/* The function that begins at, or holds, the link-time address. */
struct go_source_function {
    uint32_t function_id; /* 0: not known */
    const char *name;     /* lives as long as the image; "?" where it is not known */
    bool system;          /* goroutines that begin there are the runtime's own */
};
int go_program_function(struct go_program_file *file, struct trace_writer *writer, int64_t image_id,
                        uint64_t address, struct go_source_function *ret_function, struct error *err);

#endif
