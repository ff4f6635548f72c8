/* Times and durations for people. */
#ifndef PAWL_CLI_TERM_WHEN_H
#define PAWL_CLI_TERM_WHEN_H

#include "base/buf.h"

enum { WHEN_MAX = 40 }; /* room for any text below */

/* "11 ms", "1.8 s", "2 min 5 s", "3 h 12 min", "4 d 2 h". */
const char *duration_text(int64_t ms, char room[static WHEN_MAX]);
/* "now", "3 min ago", "in 2 h": the largest unit only. */
const char *relative_text(int64_t at_ms, int64_t now_ms, char room[static WHEN_MAX]);
/* "12:51:52.545" in UTC. */
const char *clock_text(int64_t at_ms, char room[static WHEN_MAX]);

#endif
