/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/daemon/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pwd.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/foreign_file.h"
#include "base/number.h"

#define FILE_MAX ((size_t)1 << 20)
#define LINE_MAX_BYTES 4096
#define TARGETS_MAX 1000
#define CONTAINER_DIGITS 12 /* of what `docker ps` shows; fewer could be another's */
#define SECOND_NS 1000000000u

struct parser {
    const char *path;
    unsigned line;
    struct service_config *config;
    void *section; /* the struct that keys are for; NULL: none has begun */
    const struct key *keys;
    size_t key_count;
    const char *keys_text;
    unsigned seen; /* keys of the section, by index */
    unsigned section_line;
    bool has_daemon;
    struct error *err;
};

enum kind {
    KIND_TEXT,
    KIND_PATH,
    KIND_CONTAINER,
    KIND_USER,
    KIND_REGEX,
    KIND_TIME,
    KIND_BYTES,
    KIND_SHARE,
    KIND_BUDGET,
    KIND_COUNT,
    KIND_TRIGGERS
};

struct key {
    const char *name;
    enum kind kind;
    size_t offset;
};

static const struct key daemon_keys[] = {
    {"store", KIND_PATH, offsetof(struct service_config, store)},
    {"socket", KIND_PATH, offsetof(struct service_config, socket)},
    {"scan", KIND_TIME, offsetof(struct service_config, scan_ns)},
    {"cpu-limit", KIND_SHARE, offsetof(struct service_config, cpu)},
    {"memory-limit", KIND_BYTES, offsetof(struct service_config, memory_bytes)},
    {"store-limit", KIND_BYTES, offsetof(struct service_config, store_bytes)},
    {"max-recordings", KIND_COUNT, offsetof(struct service_config, max_recordings)},
    {"budget", KIND_BUDGET, offsetof(struct service_config, budget)},
    {"rotate", KIND_TIME, offsetof(struct service_config, rotate_ns)},
};
static const char daemon_keys_text[] =
    "store, socket, scan, cpu-limit, memory-limit, store-limit, max-recordings, budget, rotate";

static const struct key target_keys[] = {
    {"name", KIND_TEXT, offsetof(struct service_target, process)},
    {"path", KIND_PATH, offsetof(struct service_target, path)},
    {"cgroup", KIND_PATH, offsetof(struct service_target, cgroup)},
    {"unit", KIND_TEXT, offsetof(struct service_target, unit)},
    {"container", KIND_CONTAINER, offsetof(struct service_target, container)},
    {"user", KIND_USER, offsetof(struct service_target, user)},
    {"functions", KIND_REGEX, offsetof(struct service_target, functions)},
    {"exclude", KIND_REGEX, offsetof(struct service_target, exclude)},
    {"budget", KIND_BUDGET, offsetof(struct service_target, budget)},
    {"rotate", KIND_TIME, offsetof(struct service_target, rotate_ns)},
    {"flight", KIND_TIME, offsetof(struct service_target, flight_ns)},
    {"flight-size", KIND_BYTES, offsetof(struct service_target, flight_bytes)},
    {"flight-on", KIND_TRIGGERS, offsetof(struct service_target, flight_on)},
};
static const char target_keys_text[] =
    "name, path, cgroup, unit, container, user, functions, exclude, budget, rotate, flight, flight-size, "
    "flight-on";

static int bad(const struct parser *parser, const char *what, const char *value, const char *remedy)
{
    return error_say(parser->err, -EINVAL, "%s:%u: %s '%.80s' (%s)", parser->path, parser->line, what, value,
                     remedy);
}

/* ------------------------------------------------------------------------------------ values */

static int keep(const struct parser *parser, char **place, const char *value)
{
    *place = strdup(value);
    return *place ? 0 : error_no_memory(parser->err);
}

static int keep_path(const struct parser *parser, char **place, const char *value)
{
    if (*value != '/')
        return bad(parser, "not a full path:", value, "use a path that begins with /");
    return keep(parser, place, value);
}

static int keep_container(const struct parser *parser, char **place, const char *value)
{
    size_t digits = strspn(value, "0123456789abcdef");

    if (value[digits] || digits < CONTAINER_DIGITS || digits > 64)
        return bad(parser, "not a container id:", value, "12 to 64 hexadecimal digits");
    return keep(parser, place, value);
}

/* A name, or a number for users that this machine has no name for. */
static int keep_user(const struct parser *parser, const char *value)
{
    struct service_target *target = parser->section;
    const struct passwd *user = getpwnam(value);
    uint64_t number = 0;

    if (!user && (!number_parse_count(value, &number) || number >= UINT32_MAX))
        return bad(parser, "not a user:", value, "a user name of this machine, or a user id");
    target->uid = user ? user->pw_uid : (int64_t)number;
    return keep(parser, &target->user, value);
}

static int keep_regex(const struct parser *parser, char **place, const char *value)
{
    regex_t regex;
    char why[96];
    int code = regcomp(&regex, value, REG_EXTENDED | REG_NOSUB);

    if (code) {
        regerror(code, &regex, why, sizeof(why));
        return bad(parser, "not a regular expression:", value, why);
    }
    regfree(&regex);
    return keep(parser, place, value);
}

static int keep_time(const struct parser *parser, uint64_t *place, const char *value)
{
    uint64_t ns;

    if (!number_parse_duration(value, &ns) || ns < SECOND_NS / 10)
        return bad(parser, "not a time:", value, "a number and ms, s, m, h or d, as in 30m; at least 0.1s");
    *place = ns;
    return 0;
}

static int keep_bytes(const struct parser *parser, uint64_t *place, const char *value)
{
    uint64_t bytes;

    if (!number_parse_size(value, &bytes) || bytes < 1 << 20)
        return bad(parser, "not a size:", value, "a number and M, G or T, as in 512M; at least 1M");
    *place = bytes;
    return 0;
}

static int keep_share(const struct parser *parser, double *place, const char *value)
{
    double share;

    if (!number_parse_share(value, &share) || share <= 0)
        return bad(parser, "not a percentage:", value, "as in 5%");
    *place = share;
    return 0;
}

static int keep_budget(const struct parser *parser, double *place, const char *value)
{
    *place = 0;
    return strcmp(value, "none") != 0 ? keep_share(parser, place, value) : 0;
}

static int keep_count(const struct parser *parser, uint64_t *place, const char *value)
{
    uint64_t count;

    if (!number_parse_count(value, &count) || !count || count > 256)
        return bad(parser, "not a number:", value, "from 1 to 256");
    *place = count;
    return 0;
}

static int keep_triggers(const struct parser *parser, char **place, const char *value)
{
    const struct service_target target = {.flight_on = (char *)value};
    struct flight_trigger *triggers;
    struct error err = {0};
    size_t count;
    int r = service_target_triggers(&target, &triggers, &count, &err);

    if (r)
        return r == -ENOMEM ? r : bad(parser, "not triggers:", value, err.message);
    while (count)
        flight_trigger_release(&triggers[--count]);
    free(triggers);
    return keep(parser, place, value);
}

static int keep_value(const struct parser *parser, const struct key *key, const char *value)
{
    void *place = (char *)parser->section + key->offset;

    switch (key->kind) {
    case KIND_TEXT:
        return keep(parser, place, value);
    case KIND_PATH:
        return keep_path(parser, place, value);
    case KIND_CONTAINER:
        return keep_container(parser, place, value);
    case KIND_USER:
        return keep_user(parser, value);
    case KIND_REGEX:
        return keep_regex(parser, place, value);
    case KIND_TIME:
        return keep_time(parser, place, value);
    case KIND_BYTES:
        return keep_bytes(parser, place, value);
    case KIND_SHARE:
        return keep_share(parser, place, value);
    case KIND_BUDGET:
        return keep_budget(parser, place, value);
    case KIND_COUNT:
        return keep_count(parser, place, value);
    case KIND_TRIGGERS:
        return keep_triggers(parser, place, value);
    }
    return 0;
}

/* ------------------------------------------------------------------------------------ lines */

static bool chooses_something(const struct service_target *target)
{
    return target->process || target->path || target->cgroup || target->unit || target->container;
}

static int end_section(struct parser *parser)
{
    const struct service_target *target = parser->section;

    if (parser->keys != target_keys)
        return 0;
    if (!target->flight_ns && (target->flight_bytes || target->flight_on))
        return error_say(
            parser->err, -EINVAL,
            "%s:%u: target '%s' has flight-size or flight-on without flight (for example flight = 5m)",
            parser->path, parser->section_line, target->name);
    if (chooses_something(target))
        return 0;
    return error_say(parser->err, -EINVAL,
                     "%s:%u: target '%s' selects no process (set name, path, cgroup, unit or container)",
                     parser->path, parser->section_line, target->name);
}

static bool is_name(const char *name)
{
    return *name && strlen(name) <= 64 &&
           !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")];
}

static int begin_target(struct parser *parser, const char *name)
{
    struct service_config *config = parser->config;
    struct service_target *target;

    if (!is_name(name))
        return bad(parser, "not a target's name:", name, "letters, digits, '_', '-' and '.'; at most 64");
    if (service_config_find(config, name))
        return bad(parser, "duplicate target", name, "use unique names");
    if (config->target_count == TARGETS_MAX)
        return bad(parser, "too many targets:", name, "at most 1000");
    if (array_reserve(&config->targets, &config->target_capacity, config->target_count + 1))
        return error_no_memory(parser->err);
    target = &config->targets[config->target_count];
    *target = (struct service_target){.budget = NAN};
    target->name = strdup(name);
    if (!target->name)
        return error_no_memory(parser->err);
    config->target_count++;
    parser->section = target;
    parser->keys = target_keys;
    parser->key_count = ARRAY_SIZE(target_keys);
    parser->keys_text = target_keys_text;
    return 0;
}

static int begin_section(struct parser *parser, char *line, size_t length)
{
    int r = end_section(parser);

    if (r)
        return r;
    if (line[length - 1] != ']')
        return bad(parser, "section header without ']':", line, "[daemon] or [target NAME]");
    line[length - 1] = '\0';
    parser->seen = 0;
    parser->section_line = parser->line;
    if (!strncmp(line, "[target ", 8))
        return begin_target(parser, line + 8 + strspn(line + 8, " \t"));
    if (strcmp(line, "[daemon") != 0)
        return bad(parser, "unknown section", line + 1, "[daemon] or [target NAME]");
    if (parser->has_daemon)
        return bad(parser, "duplicate section", "daemon", "merge its keys into the first one");
    parser->has_daemon = true;
    parser->section = parser->config;
    parser->keys = daemon_keys;
    parser->key_count = ARRAY_SIZE(daemon_keys);
    parser->keys_text = daemon_keys_text;
    return 0;
}

static void strip_end(char *text)
{
    size_t length = strlen(text);

    while (length && isspace((unsigned char)text[length - 1]))
        text[--length] = '\0';
}

static int parse_key(struct parser *parser, char *line)
{
    char *value = strchr(line, '=');

    if (!parser->section)
        return bad(parser, "key outside of a section:", line, "start with [daemon] or [target NAME]");
    if (!value)
        return bad(parser, "neither a section header nor a key:", line, "KEY = VALUE");
    *value++ = '\0';
    strip_end(line);
    value += strspn(value, " \t");
    if (!*value)
        return bad(parser, "no value for", line, "write KEY = VALUE, or delete the line");
    for (size_t i = 0; i < parser->key_count; i++) {
        if (strcmp(parser->keys[i].name, line) != 0)
            continue;
        if (parser->seen & 1u << i)
            return bad(parser, "duplicate key", line, "use each key once per section");
        parser->seen |= 1u << i;
        return keep_value(parser, &parser->keys[i], value);
    }
    return bad(parser, "unknown key", line, parser->keys_text);
}

static int parse_line(struct parser *parser, const char *text, size_t size)
{
    char buffer[LINE_MAX_BYTES], *line = buffer;

    if (size >= sizeof(buffer) || memchr(text, '\0', size))
        return bad(parser, "not a valid line of text", "", "less than 4096 bytes, none of them 0");
    memcpy(buffer, text, size);
    buffer[size] = '\0';
    strip_end(line);
    line += strspn(line, " \t");
    if (!*line || *line == '#' || *line == ';')
        return 0;
    return *line == '[' ? begin_section(parser, line, strlen(line)) : parse_key(parser, line);
}

/* ------------------------------------------------------------------------------------ the whole */

/* What targets do not say themselves. */
static void inherit(struct service_config *config)
{
    for (size_t i = 0; i < config->target_count; i++) {
        struct service_target *target = &config->targets[i];

        if (isnan(target->budget))
            target->budget = config->budget;
        /* What a flight recorder keeps is short anyway, and it would lose that. */
        if (!target->rotate_ns)
            target->rotate_ns = target->flight_ns ? UINT64_MAX : config->rotate_ns;
    }
}

static int parse_lines(struct parser *parser, const char *text, size_t size)
{
    int r = 0;

    for (size_t at = 0; !r && at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end ? (size_t)(end - text) - at : size - at;

        parser->line++;
        r = parse_line(parser, text + at, length);
        at += length + 1;
    }
    return r ? r : end_section(parser);
}

static int complete(const struct parser *parser)
{
    struct service_config *config = parser->config;

    if (!config->store)
        config->store = strdup("/var/lib/tracectl/store.db");
    if (!config->socket)
        config->socket = strdup("/run/tracectl/control");
    if (!config->store || !config->socket)
        return error_no_memory(parser->err);
    if (!config->target_count)
        return error_say(parser->err, -EINVAL, "%s:%u: no target (add a section [target NAME])", parser->path,
                         parser->line);
    inherit(config);
    return 0;
}

int service_config_parse(const char *path, const char *text, size_t size, struct service_config *ret_config,
                         struct error *err)
{
    struct parser parser = {.path = path, .config = ret_config, .err = err};
    int r;

    *ret_config = (struct service_config){
        .scan_ns = SECOND_NS,
        .cpu = 0.5,
        .memory_bytes = (uint64_t)1 << 30,
        .store_bytes = (uint64_t)2 << 30,
        .max_recordings = 8,
        .budget = 0.05,
        .rotate_ns = (uint64_t)3600 * SECOND_NS,
    };
    r = parse_lines(&parser, text, size);
    if (!r)
        r = complete(&parser);
    if (r)
        service_config_release(ret_config);
    return r;
}

int service_config_read(const char *path, struct service_config *ret_config, struct error *err)
{
    AUTO_CLOSE int fd = -1;
    AUTO_FREE char *text = malloc(FILE_MAX);
    size_t size = 0;
    ssize_t got = 1;
    struct stat status;

    if (!text)
        return error_no_memory(err);
    fd = foreign_file_open(path);
    if (fd < 0 && fd != -EINVAL)
        return error_set(err, fd, "check the path behind -c", "cannot read %s", path);
    if (fd < 0 || fstat(fd, &status) || status.st_size >= (off_t)FILE_MAX)
        return error_say(err, -EINVAL, "%s:1: not a configuration (a file of less than 1 MiB)", path);
    if (status.st_mode & (S_IWGRP | S_IWOTH) || (status.st_uid && status.st_uid != geteuid()))
        return error_say(err, -EPERM, "%s:1: writable by other users (chmod go-w, chown to root)", path);
    while (got > 0 && size < FILE_MAX) {
        got = read(fd, text + size, FILE_MAX - size);
        if (got < 0)
            return error_set(err, -errno, NULL, "cannot read %s", path);
        size += (size_t)got;
    }
    return service_config_parse(path, text, size, ret_config, err);
}

void service_config_release(struct service_config *config)
{
    for (size_t i = 0; i < config->target_count; i++)
        service_target_release(&config->targets[i]);
    free(config->targets);
    free(config->store);
    free(config->socket);
    *config = (struct service_config){0};
}

const struct service_target *service_config_find(const struct service_config *config, const char *name)
{
    for (size_t i = 0; i < config->target_count; i++)
        if (!strcmp(config->targets[i].name, name))
            return &config->targets[i];
    return NULL;
}
