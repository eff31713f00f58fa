/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "image/elf/demangle.h"

static void expect(const char *name, const char *wanted)
{
    AUTO_FREE char *got = demangle(name);

    if (!wanted)
        cr_expect_null(got, "%s gave %s", name, got);
    else if (!got)
        cr_expect_fail("%s gave nothing", name);
    else
        cr_expect_str_eq(got, wanted);
}

Test(demangle, cxx)
{
    expect("_Z3foov", "foo()");
    expect("_ZN2ns5Class6methodERKSs", "ns::Class::method(std::string const&)");
    expect("_ZNSt6vectorIiSaIiEE9push_backERKi",
           "std::vector<int, std::allocator<int> >::push_back(int const&)");
    expect("_Z1fIiEvT_.cold", "void f<int>(int) [clone .cold]");
}

Test(demangle, rust)
{
    expect("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write");
    expect("_RNvCs1234_7mycrate3foo", "mycrate::foo");
}

Test(demangle, other_names_stay)
{
    expect("main", NULL);
    expect("", NULL);
    expect("_", NULL);
    expect("_Z", NULL);
    expect("_start", NULL);
    expect("__gnat_malloc", NULL); /* other languages' conventions are not tried */
    expect("D4main3fooFZv", NULL);
}

Test(demangle, long_names_stay)
{
    AUTO_FREE char *name = malloc(100001);

    cr_assert_not_null(name);
    memset(name, 'i', 100000);
    name[100000] = '\0';
    memcpy(name, "_Z1f", 4);
    expect(name, NULL);
}
