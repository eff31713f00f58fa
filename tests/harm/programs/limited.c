/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Takes 30 MiB piece by piece: in an address space that has little more. With OWN it is itself that says so.
 */
#include <stdlib.h>
#include <sys/resource.h>

#include "harm.h"

#define PIECES 30
#define PIECE (1 << 20)
#define LIMIT (48 << 20)

CALLED static char *take(void)
{
    char *piece = malloc(PIECE);

    if (piece)
        memset(piece, 1, PIECE);
    return piece;
}

static long work(void)
{
    char *pieces[PIECES];
    long taken = 0;

#ifdef OWN
    setrlimit(RLIMIT_AS, &(struct rlimit){LIMIT, LIMIT});
#endif
    while (taken < PIECES && (pieces[taken] = take()))
        taken++;
    for (long i = 0; i < taken; i++)
        free(pieces[i]);
    return taken;
}

HARM_MAIN(PIECES)
