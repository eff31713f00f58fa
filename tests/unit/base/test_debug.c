/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>

#include "base/debug.h"

static int computed;

static int compute(void)
{
    return ++computed;
}

Test(debug, is_off_and_computes_nothing)
{
    debug_log("%d", compute());
    cr_expect_eq(computed, 0);
}

Test(debug, writes_the_chosen_parts_only, .init = cr_redirect_stderr)
{
    debug_start("collector/inline,store/writer/writer,store/db/open.c");
    debug_write("collector/inline/reader.c", "a folder");
    debug_write("collector/inline_more.c", "another file");
    debug_write("store/writer/writer.c", "a file");
    debug_write("store/writer/writer_flush.c", "another file");
    debug_write("store/db/open.c", "a file with its ending");
    debug_write("collector/plan/site.c", "another folder");
    fflush(stderr);
    {
        char text[1000] = "";
        size_t size = fread(text, 1, sizeof(text) - 1, cr_get_redirected_stderr());

        cr_assert_gt(size, 0);
        cr_expect(strstr(text, " collector/inline/reader.c: a folder\n"));
        cr_expect(strstr(text, " store/writer/writer.c: a file\n"));
        cr_expect(strstr(text, " store/db/open.c: a file with its ending\n"));
        cr_expect_null(strstr(text, "another"));
    }
}

Test(debug, shows_names_printable, .init = cr_redirect_stderr)
{
    debug_start(NULL);
    debug_log("name %s, %d", "\x1b[1m", compute());
    fflush(stderr);
    {
        char text[1000] = "";

        cr_assert_gt(fread(text, 1, sizeof(text) - 1, cr_get_redirected_stderr()), 0);
        cr_expect(strstr(text, "test_debug.c: name \\x1b[1m, 1\n"));
    }
}
