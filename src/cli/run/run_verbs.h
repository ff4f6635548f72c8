/* The verbs of `pawl run` that have a file of their own, and what they share with run.c. */
#ifndef PAWL_CLI_RUN_VERBS_H
#define PAWL_CLI_RUN_VERBS_H

#include "cli/session.h"

#define RUN_PATH "/api/v1/runs/"

enum cli_exit run_show(struct session *s);
enum cli_exit run_why(struct session *s);
enum cli_exit run_watch(struct session *s);
enum cli_exit run_bulk(struct session *s);

extern const struct option OPTIONS_RUN_BULK[];

bool run_status_is_end(const char *status);

/* Which runs: the options of `run list` and `run bulk`. */
enum { RUN_FILTER_COUNT = 5 };
extern const struct run_filter {
    const char *option;
    const char *member; /* of the query, or of `filter` in the body */
} RUN_FILTER[RUN_FILTER_COUNT];

/* The value of a filter as the server reads it: KEY=VALUE becomes KEY:VALUE. NULL: not given.
 * Prints what is wrong with it and sets *ok to false. */
const char *run_filter_value(const struct session *s, size_t i, char *room, size_t size, bool *ok);

#define RUN_FILTER_OPTIONS                                                                    \
    {.name = "status",                                                                        \
     .kind = OPTION_CHOICE,                                                                   \
     .value = "STATUS",                                                                       \
     .choices =                                                                               \
         "queued|pending|running|waiting|paused|succeeded|failed|denied|cancelled|timed_out", \
     .help = "Only runs in this status"},                                                     \
        {.name = "workflow", .value = "ID", .help = "Only runs of this workflow"},            \
        {.name = "label", .value = "KEY=VALUE", .help = "Only runs with this label"},         \
        {.name = "created-after",                                                             \
         .value = "TIME",                                                                     \
         .help = "Only runs created after this time (RFC 3339)"},                             \
    {                                                                                         \
        .name = "created-before", .value = "TIME",                                            \
        .help = "Only runs created before this time (RFC 3339)"                               \
    }

#endif
