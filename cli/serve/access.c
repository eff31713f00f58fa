/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/serve/access.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

static const char spaces[] = " \t\r\n";

static int take(const char *text, const char *where, char **ret_token, struct error *err)
{
    size_t begin = strspn(text, spaces), length = strcspn(text + begin, spaces);

    if (text[begin + length + strspn(text + begin + length, spaces)])
        return error_say(err, -EINVAL, "%s: the token must be one word", where);
    if (length < ACCESS_TOKEN_MIN || length > ACCESS_TOKEN_MAX)
        return error_say(err, -EINVAL, "%s: the token must have %d to %d characters", where, ACCESS_TOKEN_MIN,
                         ACCESS_TOKEN_MAX);
    *ret_token = strndup(text + begin, length);
    return *ret_token ? 0 : error_no_memory(err);
}

int access_read_token(const char *path, char **ret_token, struct error *err)
{
    char text[ACCESS_TOKEN_MAX + 16] = "";
    const char *environment = getenv("TRACECTL_TOKEN");
    FILE *file;
    size_t size;
    int failed;

    *ret_token = NULL;
    if (!path)
        return environment && *environment ? take(environment, "TRACECTL_TOKEN", ret_token, err) : 0;
    file = fopen(path, "re");
    if (!file)
        return error_say(err, -errno, "cannot open %s: %s", path, strerror(errno));
    size = fread(text, 1, sizeof(text) - 1, file);
    text[size] = '\0';
    failed = ferror(file);
    fclose(file);
    return failed ? error_say(err, -EIO, "cannot read %s", path) : take(text, path, ret_token, err);
}

bool access_is_equal(const char *given, const char *token)
{
    size_t length = strlen(token), given_length = strlen(given);
    volatile unsigned char different = given_length != length;

    for (size_t i = 0; i < given_length; i++)
        different |= (unsigned char)(given[i] ^ token[i % length]);
    return !different;
}

bool access_is_granted(struct MHD_Connection *connection, const char *token)
{
    const char *header = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");
    char *password = NULL, *name;
    bool granted;

    if (!header)
        return false;
    if (!strncasecmp(header, "Bearer ", strlen("Bearer ")))
        return access_is_equal(header + strlen("Bearer "), token);
    name = MHD_basic_auth_get_username_password(connection, &password);
    granted = name && password && access_is_equal(password, token);
    MHD_free(name);
    MHD_free(password);
    return granted;
}
