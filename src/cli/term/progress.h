/* A progress bar on standard error, if that is a terminal: how much of how much, how fast, and how
 * long it will still take. Elsewhere nothing is printed. */
#ifndef PAWL_CLI_TERM_PROGRESS_H
#define PAWL_CLI_TERM_PROGRESS_H

#include "base/buf.h"

struct progress {
    const char *what; /* "runs", or "bytes", which are shown as MiB */
    int64_t total;    /* 0: unknown */
    int64_t began_ms;
    int64_t drawn_ms;
    bool is_shown;
};

struct progress progress_begin(const char *what, int64_t total);
/* Draws it when enough time has passed since the last picture. */
void progress_update(struct progress *p, int64_t done);
/* Removes it from the screen. */
void progress_end(struct progress *p);

#endif
