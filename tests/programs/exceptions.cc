// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// C++ exceptions through several frames with destructors, caught at different places, and rethrown.
#include <cstdio>
#include <stdexcept>
#include <string>

#include "truth.h"

namespace
{

int destroyed;

struct Guard {
    ~Guard()
    {
        destroyed++;
        LEAVE();
    }
};

} // namespace

extern "C" {

NOINLINE int thrower(int n)
{
    ENTER();
    Guard guard;
    if (n % 3 == 0)
        throw std::runtime_error("number " + std::to_string(n));
    if (n % 3 == 1)
        throw n;
    return n;
}

NOINLINE int inner(int n)
{
    ENTER();
    Guard guard;
    return thrower(n) + 1;
}

NOINLINE int rethrower(int n)
{
    ENTER();
    Guard guard;
    try {
        return inner(n) + 1;
    } catch (int) {
        throw;
    }
}

NOINLINE int catcher(int n, int *caught)
{
    ENTER();
    Guard guard;
    try {
        return rethrower(n) + 1;
    } catch (const std::exception &e) {
        ++*caught;
    } catch (int) {
        *caught += 100;
    }
    return -1;
}
}

int main()
{
    int caught = 0, sum = 0;

    ENTER();
    for (int i = 0; i < 60; i++)
        sum += catcher(i, &caught);
    std::printf("exceptions caught %d, sum %d, destroyed %d\n", caught, sum, destroyed);
    LEAVE();
    return truth_print();
}
