/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which calls of other images' functions are told by a number in the code before them, and which are not. */
#include <criterion/criterion.h>

#include "image/flow/constant_calls.h"
#include "tests/unit/image/built.h"

static const char source[] =
    "#include <sys/resource.h>\n"
    "#include <unistd.h>\n"
    "int main(int count, char **words)\n"
    "{\n"
    "    struct rlimit limit = {1 << 30, 1 << 30};\n"
    "#ifdef NUMBER\n"
    "    setrlimit(NUMBER, &limit);\n"
    "#endif\n"
    "#ifdef OF_PROCESS\n"
    "    prlimit(getpid(), OF_PROCESS, &limit, 0);\n"
    "#endif\n"
    "    return 0;\n"
    "}\n";

static bool calls(const char *flags, const struct constant_call *call)
{
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    AUTO_FUNCTIONS struct functions functions = {0};

    built_write("limits.c", source);
    built_run("gcc -D_GNU_SOURCE %s -o limits limits.c", flags);
    image = built_open("limits");
    functions = built_functions(image);
    return image_calls_with(image, functions.items, functions.count, call);
}

Test(constant_calls, first_argument)
{
    const struct constant_call limit = {"setrlimit@plt", 0, 9};

    cr_assert(calls("-O0 -DNUMBER=RLIMIT_AS", &limit));
    cr_assert(calls("-O2 -DNUMBER=RLIMIT_AS", &limit));
    cr_assert(calls("-O2 -s -no-pie -DNUMBER=RLIMIT_AS", &limit));
    cr_assert_not(calls("-O2 -DNUMBER=RLIMIT_NOFILE", &limit), "another number");
    cr_assert_not(calls("-O2 -DNUMBER=count", &limit), "no number");
    cr_assert_not(calls("-O2", &limit), "no call");
}

Test(constant_calls, second_argument)
{
    const struct constant_call limit = {"prlimit@plt", 1, 9};

    cr_assert(calls("-O2 -DOF_PROCESS=RLIMIT_AS", &limit));
    cr_assert_not(calls("-O2 -DOF_PROCESS=RLIMIT_CORE", &limit));
    cr_assert_not(calls("-O2 -DNUMBER=RLIMIT_AS", &limit), "another function");
}
