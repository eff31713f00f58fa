/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is said of programs that do not load: the verifier's own words, and privileges only where they lack.
 */
#include <bpf/libbpf.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/error.h"
#include "bpf/wire.h" /* the skeleton has its types in arrays */

#include "bpf/tracectl.skel.h"
#include "collector/uprobe/bpf_messages.h"

#define REFUSED "libbpf: prog 'on_call': BPF program load failed: Permission denied\n"
#define LOG \
    "libbpf: prog 'on_call': -- BEGIN PROG LOAD LOG --\n" \
    "0: (bf) r9 = r1\n" \
    "R1 unbounded memory access, make sure to bounds check any such access\n" \
    "processed 7411 insns (limit 1000000) max_states_per_insn 9 total_states 205\n" \
    "-- END PROG LOAD LOG --\n"
#define BEHIND "libbpf: failed to load object 'tracectl_bpf'\n"

/* As libbpf hands a message over. */
static void say(enum libbpf_print_level level, const char *format, ...)
{
    libbpf_print_fn_t print = libbpf_set_print(NULL);
    va_list args;

    va_start(args, format);
    print(level, format, args);
    va_end(args);
    libbpf_set_print(print);
}

Test(bpf_messages, the_last_word_of_the_verifier_is_the_reason)
{
    struct error err;

    bpf_messages_begin();
    say(LIBBPF_WARN, "%s", REFUSED);
    say(LIBBPF_WARN, "%s", LOG);
    say(LIBBPF_WARN, "%s", BEHIND);
    cr_assert_str_eq(bpf_messages_reason(),
                     "on_call: R1 unbounded memory access, make sure to bounds check any such access");
    cr_assert_eq(bpf_messages_error(&err, -EACCES, "cannot load BPF programs"), -EACCES);
    cr_assert(strstr(err.message, "cannot load BPF programs: the kernel rejects on_call: R1 unbounded"));
    cr_assert_not(strstr(err.message, "root"));
    cr_assert_neq(bpf_messages_error(&err, -EPERM, "cannot load BPF programs"), -EPERM,
                  "privileges are not what lacks");
}

Test(bpf_messages, without_a_log_libbpf_says_why)
{
    struct error err;

    bpf_messages_begin();
    say(LIBBPF_WARN, "libbpf: prog '%s': failed to find kernel BTF type ID of '%s': %d\n", "on_exec", "exec",
        -3);
    say(LIBBPF_WARN, "%s", BEHIND);
    cr_assert_str_eq(bpf_messages_reason(),
                     "prog 'on_exec': failed to find kernel BTF type ID of 'exec': -3");
    cr_assert_eq(bpf_messages_error(&err, -ESRCH, "cannot load it"), -ESRCH);
    cr_assert(strstr(err.message, "BTF type ID"));
}

Test(bpf_messages, privileges_are_named_where_they_lack)
{
    struct error err;

    bpf_messages_begin();
    say(LIBBPF_WARN, "libbpf: Error in bpf_object__probe_loading(): Operation not permitted(1).\n");
    cr_assert_eq(bpf_messages_error(&err, -EPERM, "cannot load it"), -EPERM);
    cr_assert(strstr(err.message, "run as root"));
}

Test(bpf_messages, each_load_begins_without_a_reason)
{
    bpf_messages_begin();
    say(LIBBPF_WARN, "%s", LOG);
    bpf_messages_begin();
    cr_assert_str_empty(bpf_messages_reason());
    say(LIBBPF_INFO, "libbpf: not a warning\n");
    cr_assert_str_empty(bpf_messages_reason());
}

static unsigned shown;

static void count(const char *text)
{
    shown++;
}

Test(bpf_messages, all_warnings_are_shown_where_that_is_wanted)
{
    bpf_messages_begin();
    bpf_messages_show(count);
    say(LIBBPF_WARN, "%s", REFUSED);
    say(LIBBPF_WARN, "%s", LOG);
    say(LIBBPF_WARN, "%s", BEHIND);
    say(LIBBPF_DEBUG, "libbpf: map 'ring': created\n");
    bpf_messages_show(NULL);
    cr_assert_eq(shown, 3);
}

static char log_shown[1 << 16];

static void append(const char *text)
{
    strncat(log_shown, text, sizeof(log_shown) - strlen(log_shown) - 1);
}

/* In place of a program, behind its relocations: returns what R2 points to, which nothing has set, and lacks
 * the functions that its types tell of. */
static int replace_program(struct bpf_program *program, struct bpf_prog_load_opts *options, long cookie)
{
    struct bpf_insn insns[] = {
        {.code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_0, .src_reg = BPF_REG_2},
        {.code = BPF_JMP | BPF_EXIT},
    };

    return bpf_program__set_insns(program, insns, 2);
}

/* Loads the recorder's programs with one that the verifier must refuse. */
static int load_refused(struct error *err)
{
    LIBBPF_OPTS(libbpf_prog_handler_opts, handler, .prog_prepare_load_fn = replace_program);
    int registered = libbpf_register_prog_handler("uprobe.multi", BPF_PROG_TYPE_KPROBE, 0, &handler), r;
    struct tracectl_bpf *skeleton = tracectl_bpf__open();
    struct bpf_program *program = NULL;

    cr_assert_geq(registered, 0);
    cr_assert(skeleton);
    bpf_object__for_each_program(program, skeleton->obj)
        bpf_program__set_autoload(program, program == skeleton->progs.on_call_only);
    r = tracectl_bpf__load(skeleton);
    tracectl_bpf__destroy(skeleton);
    libbpf_unregister_prog_handler(registered);
    cr_assert_lt(r, 0, "the verifier accepts anything");
    return bpf_messages_error(err, r, "cannot load BPF programs");
}

Test(bpf_messages, a_refused_program_is_named_with_the_verifiers_reason_and_its_log_is_shown)
{
    struct error err;

    bpf_messages_begin();
    bpf_messages_show(append);
    cr_expect_neq(load_refused(&err), -EPERM);
    bpf_messages_show(NULL);
    cr_expect(strstr(err.message, "the kernel rejects on_call_only: "), "%s", err.message);
    cr_expect_not(strstr(err.message, "root"), "%s", err.message);
    cr_expect(strstr(log_shown, "BEGIN PROG LOAD LOG"), "%s", log_shown);
    cr_expect(strstr(log_shown, bpf_messages_reason() + strlen("on_call_only: ")), "%s", log_shown);
}
