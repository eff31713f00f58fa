/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/error.h"
#include "collector/sync/functions.h"

static const struct sync_function_spec *library_function(const char *name)
{
    for (size_t i = 0; i < sync_library_function_count; i++)
        if (!strcmp(sync_library_functions[i].name, name))
            return &sync_library_functions[i];
    cr_assert_fail("%s is not recorded", name);
    return NULL;
}

/* The result counts where it says whether somebody has the lock, and of what waits; a lock that is waited for
 * is had by who goes on. */
Test(sync_functions, results_are_recorded_where_they_count)
{
    static const char *const with[] = {
        "pthread_mutex_trylock", "pthread_mutex_timedlock", "sem_wait", "pthread_cond_wait",
        "pthread_join",          "pthread_barrier_wait"};
    static const char *const without[] = {
        "pthread_mutex_lock", "pthread_mutex_unlock", "pthread_rwlock_rdlock", "pthread_spin_lock",
        "sem_post",           "pthread_cond_signal"};

    for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++)
        cr_expect(library_function(with[i])->returns, "%s", with[i]);
    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
        cr_expect_not(library_function(without[i])->returns, "%s", without[i]);
    cr_expect_eq(library_function("pthread_cond_wait")->other, 2); /* the mutex */
}

Test(sync_functions, every_function_of_the_library_is_named_once)
{
    for (size_t i = 0; i < sync_library_function_count; i++)
        cr_expect_eq(library_function(sync_library_functions[i].name), &sync_library_functions[i], "%s",
                     sync_library_functions[i].name);
}

Test(sync_functions, system_calls_by_number)
{
    cr_expect_eq(sync_call_by_number(SYS_read).operation, SYNC_READ);
    cr_expect_eq(sync_call_by_number(SYS_read).shape, SYNC_SHAPE_FD);
    cr_expect(sync_call_by_number(SYS_sendto).sends);
    cr_expect_eq(sync_call_by_number(SYS_splice).fd, 2); /* where it goes to */
    cr_expect_eq(sync_call_by_number(SYS_clock_nanosleep).fd, 2);
    cr_expect_eq(sync_call_by_number(SYS_futex).wake, SYNC_FUTEX_WAKE);
    cr_expect_eq(sync_call_by_number(SYS_getpid).shape, SYNC_SHAPE_NONE);
    cr_expect_eq(sync_call_by_number(SYNC_CALLS).shape, SYNC_SHAPE_NONE);
    cr_expect_eq(sync_call_by_number(-1).shape, SYNC_SHAPE_NONE);
}

static void expect_declared(enum sync_event_kind kind, const char *text, const char *name, unsigned argument)
{
    struct sync_declaration declaration;
    struct error err = {0};

    cr_assert_eq(sync_declaration_parse(kind, text, &declaration, &err), 0, "%s", err.message);
    cr_expect_str_eq(declaration.name, name);
    cr_expect_eq(declaration.argument, argument);
    cr_expect_eq(declaration.kind, kind);
    free(declaration.name);
}

Test(sync_functions, declarations)
{
    static const struct {
        enum sync_event_kind kind;
        const char *text;
    } wrong[] = {
        {SYNC_ENQUEUE, "put"},   {SYNC_DEQUEUE, "take"},    {SYNC_SINK, "beat:ARG1"},
        {SYNC_HANDLER, ":ARG1"}, {SYNC_HANDLER, "on:ARG0"}, {SYNC_HANDLER, "on:ARG7"},
        {SYNC_SINK, ""},         {SYNC_ENQUEUE, "put:ARG"}, {SYNC_ENQUEUE, "put:ARG1x"},
    };

    expect_declared(SYNC_SINK, "beat", "beat", 0);
    expect_declared(SYNC_SINK, "ns::Node::beat(int)", "ns::Node::beat(int)", 0);
    expect_declared(SYNC_HANDLER, "on_request", "on_request", 0);
    expect_declared(SYNC_HANDLER, "ns::on(int):ARG2", "ns::on(int)", 2);
    expect_declared(SYNC_ENQUEUE, "put:ARG6", "put", 6);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct sync_declaration declaration;
        struct error err = {0};

        cr_expect_eq(sync_declaration_parse(wrong[i].kind, wrong[i].text, &declaration, &err), -EINVAL, "%s",
                     wrong[i].text);
        cr_expect(*err.message);
    }
}

/* Sinks and handlers last; what is queued and taken out is at one moment. */
Test(sync_functions, what_is_probed_of_declared_functions)
{
    const struct sync_declaration handler = {SYNC_HANDLER, "on", 2}, queue = {SYNC_ENQUEUE, "put", 1};
    struct sync_function_spec spec = sync_declaration_spec(&handler, 5);

    cr_expect(spec.returns);
    cr_expect_eq(spec.phase, SYNC_BEGIN);
    cr_expect_eq(spec.object, 2);
    cr_expect_eq(spec.declared, 5);
    spec = sync_declaration_spec(&queue, 6);
    cr_expect_not(spec.returns);
    cr_expect_eq(spec.phase, SYNC_AT);
}
