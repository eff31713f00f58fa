/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TRACESTORE_CREATE_H
#define TRACESTORE_CREATE_H

/*
 * Makes an empty store at `path`, where nothing is yet, so that it has all of its tables when it gets its
 * name: whoever is killed meanwhile leaves nothing. Where that cannot be done (the file system has no files
 * without a name, the disk is full, another process was faster) nothing happens; SQLite then makes the file
 * in place, and says what is wrong.
 */
void store_create_file(const char *path);

#endif
