// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Exceptions through twenty frames with destructors, rethrown half-way, out of a constructor, thrown and
// caught inside a destructor while another one is under way, kept in an exception_ptr, and on a second
// thread.
#include <exception>
#include <stdexcept>
#include <thread>

#include "harm.h"

namespace
{

long total;

CALLED void inside_destructor(int n)
{
    try {
        if (n % 5 == 0)
            throw n;
        total += 1;
    } catch (int caught) {
        total += caught;
    }
}

struct Guard {
    int level;
    CALLED explicit Guard(int n) : level(n)
    {
        if (n == 99)
            throw std::logic_error("constructor");
    }
    CALLED ~Guard()
    {
        inside_destructor(level);
    }
};

CALLED int descend(int level, int kind)
{
    Guard guard(level);
    if (level == 0) {
        if (kind == 0)
            throw std::runtime_error("bottom");
        if (kind == 1)
            Guard last(99);
        return kind;
    }
    if (level == 10) {
        try {
            return descend(level - 1, kind) + 1;
        } catch (const std::runtime_error &) {
            total += 1000;
            throw;
        }
    }
    return descend(level - 1, kind) + 1;
}

CALLED std::exception_ptr keep(int kind)
{
    try {
        descend(20, kind);
    } catch (...) {
        return std::current_exception();
    }
    return nullptr;
}

CALLED void release(const std::exception_ptr &kept)
{
    if (kept)
        std::rethrow_exception(kept);
}

CALLED void all_kinds()
{
    for (int i = 0; i < 30; i++) {
        try {
            total += descend(20, i % 3);
            release(keep(i % 2));
        } catch (const std::runtime_error &) {
            total += 10000;
        } catch (const std::exception &) {
            total += 1000000;
        }
    }
}

} // namespace

static long work(void)
{
    total = 0;
    all_kinds();
    std::thread other(all_kinds);
    other.join();
    return total;
}

// Each thread: 10 x (66 + 11000), 10 x (66 + 1000000), 10 x 88, 5 x (66 + 11000), 5 x (66 + 1000000); 66 is
// what the destructors of a descent add.
HARM_MAIN(2 * (10 * 11066L + 10 * 1000066L + 880L + 5 * 11066L + 5 * 1000066L))
