/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which requests to write to memory are about code, and hold who makes them. */
#include <criterion/criterion.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "bpf/wire.h"
#include "tests/bpf_host/kernel_side.h"

enum { EXECUTABLE = 4, SHARED = 8, THREADS = 2 }; /* vm_area_struct.vm_flags */

#define CODE 0x400000u
#define SIZE 0x1000u

static void begin(void)
{
    kernel_reset();
    kernel_trace(7);
    kernel_enter(PHASE_RECORDING);
    kernel_set_mapping(CODE, CODE + SIZE, 0);
    kernel_set_code(EXECUTABLE, 1);
}

TestSuite(rewrites, .init = begin);

static void protect(uint64_t address, int rights, int threads)
{
    const uint64_t arguments[5] = {address, SIZE, (uint64_t)rights, 0};

    kernel_protect(7, threads, REWRITE_BY_MPROTECT, arguments);
}

static const struct wire_rewrite *only_record(void)
{
    cr_assert_eq(kernel_records(), 1);
    return kernel_record(0);
}

Test(rewrites, a_process_with_one_thread_is_stopped)
{
    protect(CODE, PROT_READ | PROT_WRITE, 1);
    cr_assert_eq(only_record()->header.kind, WIRE_REWRITE);
    cr_assert_eq(only_record()->header.flags, WIRE_HELD);
    cr_assert_eq(only_record()->tgid, 7);
    cr_assert_eq(only_record()->address, CODE);
    cr_assert(kernel_record_woke(0));
    cr_assert(kernel_is_held(7));
}

Test(rewrites, one_of_several_threads_waits_until_it_is_let_go)
{
    kernel_set_let_go(20);
    protect(CODE, PROT_WRITE, THREADS);
    cr_assert_eq(only_record()->header.flags, WIRE_WAITING);
    cr_assert_eq(kernel_stops_sent(), 0);
    cr_assert_not(kernel_is_waiting(7));
}

Test(rewrites, while_probes_are_placed_only_a_stop_is_long_enough)
{
    kernel_enter(PHASE_ATTACHING);
    protect(CODE, PROT_WRITE, THREADS);
    cr_assert_eq(only_record()->header.flags, WIRE_HELD);
}

Test(rewrites, requests_by_the_number_of_the_system_call)
{
    const uint64_t write[5] = {SYS_mprotect, CODE, SIZE, PROT_WRITE};
    const uint64_t read[5] = {SYS_mprotect, CODE, SIZE, PROT_READ};
    const uint64_t other[5] = {SYS_munmap, CODE, SIZE, PROT_WRITE};

    kernel_protect(7, 1, REWRITE_BY_NUMBER, read);
    kernel_protect(7, 1, REWRITE_BY_NUMBER, other);
    cr_assert_eq(kernel_records(), 0);
    kernel_protect(7, 1, REWRITE_BY_NUMBER, write);
    cr_assert_eq(only_record()->address, CODE);
}

Test(rewrites, what_is_no_request_to_write_to_a_files_code)
{
    protect(CODE, PROT_READ | PROT_EXEC, 1);
    protect(CODE - SIZE, PROT_WRITE, 1); /* nothing is mapped there */
    kernel_set_code(0, 1);
    protect(CODE, PROT_WRITE, 1); /* data */
    kernel_set_code(EXECUTABLE, 0);
    protect(CODE, PROT_WRITE, 1); /* made at run time */
    kernel_set_code(EXECUTABLE | SHARED, 1);
    protect(CODE, PROT_WRITE, 1); /* the kernel places no probes there */
    cr_assert_eq(kernel_records(), 0);
    cr_assert_eq(kernel_stops_sent(), 0);
}

Test(rewrites, of_a_process_that_is_not_traced)
{
    const uint64_t arguments[5] = {CODE, SIZE, PROT_WRITE, 0};

    kernel_protect(8, 1, REWRITE_BY_MPROTECT, arguments);
    cr_assert_eq(kernel_records(), 0);
}

static void map(uint64_t size, int rights, int flags, bool by_number)
{
    const uint64_t arguments[5] = {0, size, (uint64_t)rights, (uint64_t)flags};
    const uint64_t with_number[5] = {SYS_mmap, 0, size, (uint64_t)rights, (uint64_t)flags};

    kernel_protect(7, 1, by_number ? REWRITE_BY_NUMBER : REWRITE_BY_MMAP,
                   by_number ? with_number : arguments);
}

Test(rewrites, memory_that_a_copy_of_the_code_could_run_in)
{
    const int all = PROT_READ | PROT_WRITE | PROT_EXEC, own = MAP_PRIVATE | MAP_ANONYMOUS;

    kernel_set_mapping(CODE, CODE + 2 * SIZE, 0);
    map(SIZE, all, own, false);
    map(2 * SIZE, PROT_READ | PROT_WRITE, own, false);
    map(2 * SIZE, PROT_READ | PROT_EXEC, own, false);
    map(2 * SIZE, all, MAP_PRIVATE, false);
    cr_assert_eq(kernel_records(), 0);
    map(SIZE + 1, all, own, false); /* in whole pages it is as large as the code */
    cr_assert_eq(only_record()->address, CODE);
    cr_assert(only_record()->copies);
    map(2 * SIZE, all, own, true);
    cr_assert_eq(kernel_records(), 2);
}
