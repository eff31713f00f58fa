/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tests/unit/analyzer/cascade_script.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "store/streams/sync_events.h"

enum { MOST_PROCESSES = 4, MOST_THREADS = 8, MOST_FUNCTIONS = 64, MOST_CHANNELS = 8, STEP_NS = 1000 };

struct script_thread {
    struct thread_writer *calls;
    uint64_t position;
};

struct script {
    struct trace_writer *writer;
    int64_t image;
    struct {
        int64_t id;
        struct process_writer *sync;
        struct script_thread threads[MOST_THREADS];
    } processes[MOST_PROCESSES];
    struct {
        char name[64];
        uint32_t id;
    } functions[MOST_FUNCTIONS];
    size_t function_count;
    struct {
        char name[16];
        uint64_t number, sent, received;
    } channels[MOST_CHANNELS];
    size_t channel_count;
    unsigned process, thread; /* of the present line */
    uint64_t ns;
};

uint64_t cascade_script_object(const char *name)
{
    uint64_t object = 0x1000;

    for (; *name; name++)
        object = object * 31 + (unsigned char)*name;
    return object;
}

/* ------------------------------------------------------------------------------------------ writing */

static struct script_thread *thread_of(struct script *script, unsigned number)
{
    struct script_thread *thread = &script->processes[script->process].threads[number];
    char label[16];
    struct trace_thread_description description = {.label = label, .started_ns = 1000};

    if (!script->processes[script->process].id) {
        const struct trace_process_description process = {
            .pid = 100 + (int)script->process, .rank = -1, .exe = "/bin/script", .started_ns = 1000};
        struct sync_process_description sync = {.from_ns = 1000, .from_start = true};

        cr_assert_eq(trace_writer_process(script->writer, &process, &sync.process_id, NULL), 0);
        script->processes[script->process].id = sync.process_id;
        cr_assert_eq(
            trace_writer_sync_process(script->writer, &sync, &script->processes[script->process].sync, NULL),
            0);
        cr_assert_eq(trace_writer_sync_library(script->writer, sync.process_id, "libc.so", NULL, NULL), 0);
    }
    if (thread->calls)
        return thread;
    snprintf(label, sizeof(label), "%u.%u", script->process, number);
    description.process_id = script->processes[script->process].id;
    description.tid = 1000 + (int)(script->process * 100 + number);
    cr_assert_eq(trace_writer_thread(script->writer, &description, &thread->calls, NULL), 0);
    return thread;
}

static void append(struct script *script, enum sync_event_kind kind, enum sync_phase phase, uint64_t object,
                   uint64_t other, int64_t result)
{
    const struct process_event event = {
        .ns = script->ns += STEP_NS,
        .object = object,
        .other = other,
        .result = result,
        .position = thread_of(script, script->thread)->position,
        .thread = script->thread,
        .kind = (uint8_t)kind,
        .phase = (uint8_t)phase,
    };

    cr_assert_eq(process_writer_append(script->processes[script->process].sync, &event), 0);
}

/* Both events of an operation that took no time. */
static void append_both(struct script *script, enum sync_event_kind kind, uint64_t object, uint64_t other,
                        int64_t result)
{
    append(script, kind, SYNC_BEGIN, object, other, 0);
    append(script, kind, SYNC_END, object, other, result);
}

static uint32_t function_id(struct script *script, const char *name)
{
    struct trace_function_description function = {.file = "script.c"};
    char full[64];

    for (size_t i = 0; i < script->function_count; i++)
        if (!strcmp(script->functions[i].name, name))
            return script->functions[i].id;
    cr_assert_lt(script->function_count, (size_t)MOST_FUNCTIONS);
    snprintf(full, sizeof(full), "%.*s%s", (int)strcspn(name, "@"), name, strchr(name, '@') ? "@plt" : "");
    function.name = full;
    function.address = 16 * (script->function_count + 1);
    function.line = (int)(script->function_count + 1);
    snprintf(script->functions[script->function_count].name, sizeof(script->functions[0].name), "%s", name);
    cr_assert_eq(trace_writer_function(script->writer, script->image, &function,
                                       &script->functions[script->function_count].id, NULL),
                 0);
    return script->functions[script->function_count++].id;
}

static size_t channel_at(const struct script *script, const char *name)
{
    for (size_t i = 0; i < script->channel_count; i++)
        if (!strcmp(script->channels[i].name, name))
            return i;
    cr_assert_fail("'%s' is not a channel", name);
    return 0;
}

static void add_channel(struct script *script, const char *name, const char *other)
{
    const struct sync_channel channel = {.name = "",
                                         .local = (char *)name,
                                         .remote = (char *)other,
                                         .device = 1,
                                         .inode = script->channel_count + 1,
                                         .net = 1,
                                         .kind = SYNC_CHANNEL_TCP,
                                         .from_start = true};

    cr_assert_lt(script->channel_count, (size_t)MOST_CHANNELS);
    snprintf(script->channels[script->channel_count].name, sizeof(script->channels[0].name), "%s", name);
    cr_assert_eq(trace_writer_sync_channel(script->writer, &channel,
                                           &script->channels[script->channel_count].number, NULL),
                 0);
    script->channel_count++;
}

/* ------------------------------------------------------------------------------------------ words */

static const struct {
    const char *word;
    enum sync_event_kind kind;
    enum sync_phase phase;
} about_objects[] = {
    {"lock", SYNC_MUTEX_LOCK, SYNC_BEGIN},       {"unlock", SYNC_MUTEX_UNLOCK, SYNC_AT},
    {"rdlock", SYNC_RWLOCK_RDLOCK, SYNC_BEGIN},  {"wrlock", SYNC_RWLOCK_WRLOCK, SYNC_BEGIN},
    {"rwunlock", SYNC_RWLOCK_UNLOCK, SYNC_AT},   {"signal", SYNC_COND_SIGNAL, SYNC_AT},
    {"broadcast", SYNC_COND_BROADCAST, SYNC_AT}, {"post", SYNC_SEM_POST, SYNC_AT},
    {"arrive", SYNC_BARRIER_WAIT, SYNC_BEGIN},   {"leave", SYNC_BARRIER_WAIT, SYNC_END},
    {"enqueue", SYNC_ENQUEUE, SYNC_AT},          {"trylock", SYNC_MUTEX_TRYLOCK, SYNC_END},
    {"down", SYNC_SEM_WAIT, SYNC_END},
};

static const char *next_word(char **rest)
{
    const char *word = strtok_r(NULL, " ", rest);

    cr_assert_not_null(word, "a word is missing");
    return word;
}

static int64_t next_number(char **rest)
{
    return strtoll(next_word(rest), NULL, 10);
}

static bool say_object(struct script *script, const char *word, char **rest)
{
    for (size_t i = 0; i < ARRAY_SIZE(about_objects); i++)
        if (!strcmp(word, about_objects[i].word)) {
            append(script, about_objects[i].kind, about_objects[i].phase,
                   cascade_script_object(next_word(rest)), 0, 0);
            return true;
        }
    return false;
}

static bool say_call(struct script *script, const char *word, char **rest)
{
    struct script_thread *thread = thread_of(script, script->thread);

    if (!strcmp(word, "call"))
        cr_assert_eq(thread_writer_call(thread->calls, function_id(script, next_word(rest))), 0);
    else if (!strcmp(word, "ret"))
        cr_assert_eq(thread_writer_return(thread->calls), 0);
    else
        return false;
    thread->position++;
    return true;
}

static bool say_life(struct script *script, const char *word, char **rest)
{
    if (!strcmp(word, "create"))
        append(script, SYNC_THREAD_CREATE, SYNC_AT, 0, (uint64_t)next_number(rest), 0);
    else if (!strcmp(word, "begin")) {
        const char *maker = next_word(rest);

        append(script, SYNC_THREAD_BEGIN, SYNC_AT, 0,
               *maker == '-' ? SYNC_UNKNOWN_THREAD : strtoull(maker, NULL, 10), 0);
    } else if (!strcmp(word, "end"))
        append(script, SYNC_THREAD_END, SYNC_AT, 0, 0, 0);
    else if (!strcmp(word, "join"))
        append_both(script, SYNC_THREAD_JOIN, 0, (uint64_t)next_number(rest), 0);
    else if (!strcmp(word, "fork"))
        append(script, SYNC_PROCESS_FORK, SYNC_AT, 0, 100 + (uint64_t)next_number(rest), 0);
    else if (!strcmp(word, "start"))
        append(script, SYNC_PROCESS_BEGIN, SYNC_AT, 0, 100 + (uint64_t)next_number(rest), 0);
    else if (!strcmp(word, "exit"))
        append(script, SYNC_PROCESS_EXIT, SYNC_AT, 0, 0, 0);
    else if (!strcmp(word, "reap"))
        append_both(script, SYNC_PROCESS_WAIT, 0, 0, 100 + next_number(rest));
    else if (!strcmp(word, "lost"))
        append(script, SYNC_LOST, SYNC_AT, 0, 0, next_number(rest));
    else
        return false;
    return true;
}

static void say_bytes(struct script *script, enum sync_event_kind kind, char **rest)
{
    size_t at = channel_at(script, next_word(rest));
    uint64_t *position = kind == SYNC_SEND ? &script->channels[at].sent : &script->channels[at].received;
    int64_t bytes = next_number(rest);

    append_both(script, kind, script->channels[at].number, *position, bytes);
    *position += (uint64_t)bytes;
}

static bool say_input(struct script *script, const char *word, char **rest)
{
    if (!strcmp(word, "send"))
        say_bytes(script, SYNC_SEND, rest);
    else if (!strcmp(word, "recv"))
        say_bytes(script, SYNC_RECEIVE, rest);
    else if (!strcmp(word, "empty"))
        append_both(script, SYNC_RECEIVE, script->channels[channel_at(script, next_word(rest))].number, 0,
                    -EAGAIN);
    else if (!strcmp(word, "accept"))
        append_both(script, SYNC_ACCEPT, script->channels[channel_at(script, next_word(rest))].number, 0, 0);
    else if (!strcmp(word, "read"))
        append_both(script, SYNC_READ, 0, 0, next_number(rest));
    else if (!strcmp(word, "write"))
        append_both(script, SYNC_WRITE, 0, 0, next_number(rest));
    else if (!strcmp(word, "poll"))
        append_both(script, SYNC_POLL, 0, 0, next_number(rest));
    else if (!strcmp(word, "sleep"))
        append_both(script, SYNC_SLEEP, 0, 1000, 0);
    else
        return false;
    return true;
}

static bool say_wait(struct script *script, const char *word, char **rest)
{
    bool begins = !strcmp(word, "wait");

    if (begins || !strcmp(word, "woken")) {
        uint64_t condition = cascade_script_object(next_word(rest));

        append(script, SYNC_COND_WAIT, begins ? SYNC_BEGIN : SYNC_END, condition,
               cascade_script_object(next_word(rest)), 0);
    } else if (!strcmp(word, "handler")) {
        uint64_t event = cascade_script_object(next_word(rest));

        append(script, SYNC_HANDLER, SYNC_BEGIN, event, (uint64_t)next_number(rest), 0);
    } else if (!strcmp(word, "handled")) {
        append(script, SYNC_HANDLER, SYNC_END, 0, 0, 0);
    } else {
        return false;
    }
    return true;
}

static void say(struct script *script, const char *word, char **rest)
{
    if (!strcmp(word, "channel")) {
        const char *name = next_word(rest), *other = next_word(rest);

        add_channel(script, name, other);
        add_channel(script, other, name);
        return;
    }
    cr_assert(say_call(script, word, rest) || say_object(script, word, rest) ||
                  say_life(script, word, rest) || say_input(script, word, rest) ||
                  say_wait(script, word, rest),
              "'%s' is not a word of scripts", word);
}

/* ------------------------------------------------------------------------------------------ lines */

/* The words of `text`, and those in brackets again and again; the text is changed. */
static void say_words(struct script *script, char *text)
{
    char *open = strstr(text, "*["), *close, *number, *words, *rest = NULL;

    if (open) {
        number = open;
        while (number > text && number[-1] != ' ')
            number--;
        close = open;
        for (int depth = 0; *close; close++) {
            depth += *close == '[';
            depth -= *close == ']';
            if (*close == ']' && !depth)
                break;
        }
        cr_assert(*close, "no ] in '%s'", text);
        *close = '\0';
        if (number > text) {
            number[-1] = '\0';
            say_words(script, text);
        }
        for (long i = strtol(number, NULL, 10); i > 0; i--) {
            words = strdup(open + 2);
            say_words(script, words);
            free(words);
        }
        say_words(script, close + 1);
        return;
    }
    for (const char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        say(script, word, &rest);
}

int64_t cascade_script_write(struct tracestore *store, const char *text)
{
    const struct trace_run_description run = {.name = "script", .started_ns = 1000};
    const struct trace_image_description image = {.path = "/bin/script", .kind = "main"};
    struct script script = {.ns = 1000};
    char *copy = strdup(text), *rest = NULL;
    int64_t run_id;

    cr_assert_eq(trace_writer_begin(store, &run, NULL, &script.writer, NULL), 0);
    cr_assert_eq(trace_writer_image(script.writer, &image, &script.image, NULL), 0);
    for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *words = line + strspn(line, " ");

        if (!*words)
            continue;
        cr_assert_eq(sscanf(words, "%u.%u", &script.process, &script.thread), 2, "no thread: '%s'", line);
        cr_assert(script.process < MOST_PROCESSES && script.thread < MOST_THREADS);
        thread_of(&script, script.thread);
        say_words(&script, words + strcspn(words, " "));
    }
    run_id = trace_writer_run_id(script.writer);
    cr_assert_eq(trace_writer_end(script.writer, script.ns + 1, 0, NULL), 0);
    trace_writer_free(script.writer);
    free(copy);
    return run_id;
}
