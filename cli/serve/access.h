/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who may ask: the token. */
#ifndef TRACECTL_CLI_SERVE_ACCESS_H
#define TRACECTL_CLI_SERVE_ACCESS_H

#include <stdbool.h>

struct error;
struct MHD_Connection;

enum { ACCESS_TOKEN_MIN = 16, ACCESS_TOKEN_MAX = 1024 };

/* The token that the file `path` has (NULL: the environment's TRACECTL_TOKEN), without spaces around it, in
 * memory from malloc; *ret_token is NULL where there is neither. A token has 16 characters or more. */
int access_read_token(const char *path, char **ret_token, struct error *err);

/* Whether the two are equal, in a time that does not depend on where they differ. */
bool access_is_equal(const char *given, const char *token);

/* Whether a request brings the token: as `Authorization: Bearer TOKEN`, or as the password of Basic, which is
 * what a browser asks its user for. */
bool access_is_granted(struct MHD_Connection *connection, const char *token);

#endif
