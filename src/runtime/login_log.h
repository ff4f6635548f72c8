/* API keys that were refused are counted, and logged in one line every LOGIN_LOG_MS at most. On the
 * HTTP loop's thread only. */
#ifndef PAWL_RUNTIME_LOGIN_LOG_H
#define PAWL_RUNTIME_LOGIN_LOG_H

#include "base/err.h"
#include "base/str.h"

struct metric;

struct login_log {
    struct metric *failures; /* by reason */
    int64_t next_at_ms;      /* no line before */
    int64_t unlogged;        /* since the last line */
};

/* What became of a key from that address; nothing happens if it was not refused, or the address is
 * not known. */
void login_log_note(struct login_log *l, struct str peer, enum err e, int64_t mono_ms);

#endif
