/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The events of a file in Chrome's trace event format, one after the other: jansson reads each of them by
 * itself, so that the file may be of any size.
 */
#ifndef TRACESTORE_IMPORT_CHROME_JSON_H
#define TRACESTORE_IMPORT_CHROME_JSON_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

struct error;

struct chrome_json {
    const char *path; /* for messages */
    uint64_t events;  /* read so far: the number of the event that is being looked at */
    int (*event)(void *context, const json_t *event);  /* an object; non-zero ends the reading */
    int (*other)(void *context, const json_t *object); /* `otherData`, likewise */
    void *context;
    struct error *err;
};

/* -EBADMSG: the file is no such trace; else what a visitor returned. */
int chrome_json_read(struct chrome_json *json, FILE *in);

#endif
