/* The requests of the torture of the server: at least one that succeeds for each route, in an order
 * in which each finds what it needs. */
#ifndef PAWL_TESTS_TORTURE_SCRIPT_H
#define PAWL_TESTS_TORTURE_SCRIPT_H

#include "base/buf.h"

struct script_line {
    const char *method;
    const char *target; /* $name: what an earlier answer gave; $key: the key of the
                           last request that changed something */
    const char *tenant; /* NULL: none */
    const char *body;   /* NULL: none; quotes are single ones; $name as above */
    /* "name=path name=path": parts of the answer for later lines; a path is members and indexes
     * with slashes between. NULL: none. */
    const char *keep;
    int64_t wait_ms; /* so much time passes before the request */
    int status;      /* of a request that is always refused; 0: it is done */
    /* Its commit dispatches an http step. If the process ends right after it, the call is lost, and
     * the end of its lease adds rows. */
    bool calls_out;
};

extern const struct script_line SCRIPT[];
extern const size_t SCRIPT_COUNT;

/* Replaces single quotes and names. The caller releases *ret. */
void script_fill(const char *text, struct buf *ret);
/* $name is this from now on. */
void script_keep_value(const char *name, const char *value);
/* Takes what the line keeps out of its answer. An answer without it ends the program. */
void script_keep(const struct script_line *line, struct str answer);

/* The first route without a line; NULL: there is none. */
const char *script_lacks(void);

#endif
