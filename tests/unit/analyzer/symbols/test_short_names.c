/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Long names in narrow columns. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "analyzer/symbols/short_names.h"
#include "base/text.h"

static void expect(const char *name, size_t width, const char *wanted)
{
    char text[SHORT_NAME_SIZE(100)];

    name_shorten(name, width, text, sizeof(text));
    cr_assert_str_eq(text, wanted, "%s", text);
}

Test(short_names, what_is_left_out_first)
{
    static const char name[] =
        "std::map<std::string, int, std::less<std::string> >::insert(std::pair<int const, (a)>&&)";

    expect("MPI_Send", 20, "MPI_Send");
    expect(name, 90, name);
    expect(name, 70, "std::map<std::string, int, std::less<std::string> >::insert(...)");
    expect(name, 40, "std::map<...>::insert(...)");
    expect(name, 24, "...::insert(...)");
    expect(name, 12, "...:...(...)");
}

Test(short_names, brackets_that_are_names)
{
    expect("long_namespace::stream::operator<<(char const*, unsigned long)", 44,
           "long_namespace::stream::operator<<(...)");
    expect("long_namespace::pointer<a_rather_long_type>::operator->() const", 50,
           "long_namespace::pointer<...>::operator->() const");
    expect("(anonymous namespace)::parse(std::istream&)", 30, "(...)::parse(...)");
    expect("unbalanced(int, std::vector<int>", 20, "...::vector<int>");
}

Test(short_names, characters_are_not_bytes)
{
    cr_assert_eq(text_width("\xc3\xa9t\xc3\xa9"), 3);
    cr_assert_eq(text_width("\xff\xc3"), 2);
    expect("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 8,
           "\xc3\xa9\xc3\xa9...\xc3\xa9\xc3\xa9\xc3\xa9");
    expect("bell\a\nhere", 20, "bell\\x07\\nhere");
}

/* Whatever the name, it fits, and short ones stay as they are. */
Test(short_names, always_fit)
{
    static const char alphabet[] = "ab:<>()-, \xc3\xa9\xe2operator<";
    uint32_t seed = 1;

    for (int round = 0; round < 20000; round++) {
        char name[64], text[SHORT_NAME_SIZE(40)];
        size_t length = 0, width = 8 + (size_t)round % 32;

        for (; length < (size_t)round % 63; length++) {
            seed = seed * 1664525 + 1013904223;
            name[length] = alphabet[(seed >> 16) % (sizeof(alphabet) - 1)];
        }
        name[length] = '\0';
        name_shorten(name, width, text, sizeof(text));
        cr_assert_leq(text_width(text), width, "%s -> %s", name, text);
        if (text_width(name) <= width && text_is_printable(name))
            cr_assert_str_eq(text, name);
    }
}
