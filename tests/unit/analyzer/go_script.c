/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tests/unit/analyzer/go_script.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { STEP_NS = 10, MOST_WORDS = 16, FIRST_FUNCTION = 100, RUNTIME_FUNCTIONS = 20 };

/* ------------------------------------------------------------------------------------------ words */

static const struct {
    const char *word, *reason;
} reasons[] = {
    {"other", "debug call"},
    {"recv", "chan receive"},
    {"send", "chan send"},
    {"select", "select"},
    {"forever", "select (no cases)"},
    {"nil", "chan receive (nil chan)"},
    {"lock", "sync.Mutex.Lock"},
    {"rlock", "sync.RWMutex.RLock"},
    {"wlock", "sync.RWMutex.Lock"},
    {"sema", "semacquire"},
    {"group", "sync.WaitGroup.Wait"},
    {"cond", "sync.Cond.Wait"},
    {"sleep", "sleep"},
    {"io", "IO wait"},
    {"gc", "GC assist wait"},
    {"finalizer", "finalizer wait"},
};
char *const go_script_reasons[] = {
    "debug call",
    "chan receive",
    "chan send",
    "select",
    "select (no cases)",
    "chan receive (nil chan)",
    "sync.Mutex.Lock",
    "sync.RWMutex.RLock",
    "sync.RWMutex.Lock",
    "semacquire",
    "sync.WaitGroup.Wait",
    "sync.Cond.Wait",
    "sleep",
    "IO wait",
    "GC assist wait",
    "finalizer wait",
};
const size_t go_script_reason_count = ARRAY_SIZE(go_script_reasons);

static const struct {
    const char *verb;
    enum go_op operation;
} verbs[] = {
    {"make", GO_OP_CHAN_MAKE},
    {"send", GO_OP_CHAN_SEND},
    {"recv", GO_OP_CHAN_RECV},
    {"range", GO_OP_CHAN_RANGE},
    {"close", GO_OP_CHAN_CLOSE},
    {"select", GO_OP_SELECT},
    {"lock", GO_OP_MUTEX_LOCK},
    {"trylock", GO_OP_MUTEX_TRYLOCK},
    {"unlock", GO_OP_MUTEX_UNLOCK},
    {"wlock", GO_OP_RWMUTEX_LOCK},
    {"wtrylock", GO_OP_RWMUTEX_TRYLOCK},
    {"wunlock", GO_OP_RWMUTEX_UNLOCK},
    {"rlock", GO_OP_RWMUTEX_RLOCK},
    {"tryrlock", GO_OP_RWMUTEX_TRYRLOCK},
    {"runlock", GO_OP_RWMUTEX_RUNLOCK},
    {"add", GO_OP_WAITGROUP_ADD},
    {"done", GO_OP_WAITGROUP_DONE},
    {"wait", GO_OP_WAITGROUP_WAIT},
    {"condwait", GO_OP_COND_WAIT},
    {"signal", GO_OP_COND_SIGNAL},
    {"broadcast", GO_OP_COND_BROADCAST},
    {"once", GO_OP_ONCE_DO},
    {"sleep", GO_OP_SLEEP},
    {"forever", GO_OP_BLOCK},
};

static const struct {
    const char *verb;
    enum go_event_kind kind;
} kinds[] = {
    {"go", GO_EVENT_CREATE},       {"run", GO_EVENT_RUN},       {"end", GO_EVENT_END},
    {"case", GO_EVENT_CASE},       {"result", GO_EVENT_RESULT}, {"block", GO_EVENT_BLOCK},
    {"wake", GO_EVENT_WAKE},       {"yield", GO_EVENT_YIELD},   {"timer", GO_EVENT_TIMER},
    {"stop", GO_EVENT_TIMER_STOP}, {"test", GO_EVENT_TEST},     {"panic", GO_EVENT_PANIC},
    {"delay", GO_EVENT_DELAY},     {"fatal", GO_EVENT_FATAL},   {"exit", GO_EVENT_EXIT},
    {"lost", GO_EVENT_LOST},       {"detail", GO_EVENT_DETAIL}, {"fire", GO_EVENT_TIMER_RUN},
    {"signals", GO_EVENT_SIGNALS},
};

uint64_t go_script_object(const char *name)
{
    return 0xc000000000u + (uint64_t)(unsigned char)name[0] * 0x100000 + strtoull(name + 1, NULL, 10) * 0x40;
}

static bool is_numbered(const char *word, char letter)
{
    return word[0] == letter && word[1] && word[1 + strspn(word + 1, "0123456789")] == '\0';
}

static int64_t number(const char *word)
{
    char *end;
    long long value = strtoll(word, &end, 10);

    cr_assert(*word && !*end, "'%s' is not a number", word);
    return value;
}

/* ------------------------------------------------------------------------------------------ a statement */

static void read_verb(struct process_event *event, const char *verb)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (!strcmp(kinds[i].verb, verb)) {
            event->kind = (uint8_t)kinds[i].kind;
            return;
        }
    event->kind = GO_EVENT_OPERATE;
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
        if (!strcmp(verbs[i].verb, verb))
            event->operation = (uint8_t)verbs[i].operation;
    cr_assert(event->operation, "'%s' is not a verb", verb);
}

static int64_t reason_number(const char *word)
{
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
        if (!strcmp(reasons[i].word, word))
            for (size_t j = 0; j < go_script_reason_count; j++)
                if (!strcmp(go_script_reasons[j], reasons[i].reason))
                    return (int64_t)j;
    cr_assert_fail("'%s' is not a reason to wait", word);
    return -1;
}

/* A word that stands for itself. False: it does not. */
static bool read_flag(struct process_event *event, const char *word)
{
    if (!strcmp(word, "done"))
        event->flags |= GO_FLAG_DONE;
    else if (!strcmp(word, "inner"))
        event->flags |= GO_FLAG_INNER;
    else if (!strcmp(word, "try"))
        event->flags |= GO_FLAG_TRY;
    else if (!strcmp(word, "send"))
        event->flags |= GO_FLAG_SEND;
    else if (!strcmp(word, "timer") || !strcmp(word, "runs"))
        event->flags |= GO_FLAG_TIMER;
    else
        return !strcmp(word, "recv") || !strcmp(word, "due") || !strcmp(word, "every");
    return true;
}

static void read_word(struct process_event *event, const char *word, const char *before)
{
    if (event->kind == GO_EVENT_BLOCK)
        event->value = reason_number(word);
    else if (event->kind == GO_EVENT_FATAL)
        event->value = !strcmp(word, "deadlock") ? GO_FATAL_DEADLOCK
                       : !strcmp(word, "panic")  ? GO_FATAL_PANIC
                                                 : GO_FATAL_OTHER;
    else if (read_flag(event, word))
        return;
    else if (is_numbered(word, 'g'))
        event->other = (uint64_t)number(word + 1);
    else if (is_numbered(word, 's'))
        event->site = (uint32_t)number(word + 1);
    else if (is_numbered(word, 't'))
        event->tid = (uint32_t)number(word + 1);
    else if (is_numbered(word, 'f') || is_numbered(word, 'n'))
        event->value = number(word + 1);
    else if (word[0] >= 'a' && word[0] <= 'z')
        event->object = go_script_object(word);
    else if (!strcmp(before, "every"))
        event->other = (uint64_t)number(word);
    else
        event->value = number(word);
}

static struct process_event read_statement(char **words, size_t count)
{
    struct process_event event = {0};

    cr_assert(count >= 2 && is_numbered(words[0], 'g'), "no statement: '%s'", words[0]);
    event.goroutine = (uint64_t)number(words[0] + 1);
    read_verb(&event, words[1]);
    for (size_t i = 2; i < count; i++)
        read_word(&event, words[i], words[i - 1]);
    if (event.kind == GO_EVENT_CREATE && !event.value)
        event.value = (int64_t)(FIRST_FUNCTION + event.other);
    return event;
}

/* ------------------------------------------------------------------------------------------ the script */

struct go_script go_script_read(const char *text)
{
    struct go_script script = {0};
    char *copy = strdup(text), *rest, *statement;
    size_t capacity = 0;
    uint64_t ns = 0;

    cr_assert_not_null(copy);
    for (statement = strtok_r(copy, ";\n", &rest); statement; statement = strtok_r(NULL, ";\n", &rest)) {
        char *words[MOST_WORDS], *inner;
        size_t count = 0;

        for (char *word = strtok_r(statement, " ", &inner); word; word = strtok_r(NULL, " ", &inner)) {
            cr_assert(count < MOST_WORDS);
            words[count++] = word;
        }
        if (!count)
            continue;
        if (!strcmp(words[0], "at")) {
            cr_assert_eq(count, 2);
            ns = (uint64_t)number(words[1]) - STEP_NS;
            continue;
        }
        cr_assert_eq(array_reserve(&script.events, &capacity, script.count + 1), 0);
        script.events[script.count] = read_statement(words, count);
        script.events[script.count++].ns = ns += STEP_NS;
    }
    free(copy);
    return script;
}

static bool is_runtime(void *context, uint32_t function)
{
    (void)context;
    return function < RUNTIME_FUNCTIONS;
}

struct go_replay_options go_script_options(void)
{
    return (struct go_replay_options){
        .is_runtime = is_runtime,
        .wait_reasons = go_script_reasons,
        .wait_reason_count = go_script_reason_count,
    };
}

void go_script_feed(struct go_replay *replay, const char *text)
{
    struct go_script script = go_script_read(text);

    for (size_t i = 0; i < script.count; i++)
        cr_assert_eq(go_replay_event(replay, &script.events[i]), 0);
    free(script.events);
}

struct go_replay *go_script_replay(const char *text, const struct go_replay_options *options)
{
    struct go_replay_options usual = go_script_options();
    struct go_replay *replay;

    cr_assert_eq(go_replay_new(options ? options : &usual, &replay), 0);
    go_script_feed(replay, text);
    return replay;
}
