/* One command being carried out: its flags, its server, its request and the answer.
 *
 * A verb fills in the path and, where there is one, the body; calls; and shows the answer to
 * people. The session does what is common to all: keys, repetition, --json, refusals, pages, exit
 * codes. */
#ifndef PAWL_CLI_SESSION_H
#define PAWL_CLI_SESSION_H

#include "base/json.h"
#include "cli/client.h"
#include "cli/options.h"
#include "cli/private_server.h"
#include "cli/table.h"

struct session;

struct verb {
    const char *group; /* a word in front of its name; NULL: none */
    const char *name;  /* NULL: the command's only one, which has no name */
    const char *arg;   /* what the usage calls its first argument; NULL: it takes none */
    const char *arg2;  /* likewise its second */
    const char *arg3;  /* and so on; one in brackets may be left out */
    const char *arg4;
    const char *command; /* likewise the command behind `--` */
    const char *about;
    const char *notes; /* the help's last words; NULL: none */
    const struct flag *flags;
    enum cli_exit (*run)(struct session *s);
    bool store;          /* may work on a data file with --store */
    bool tenant_in_body; /* --tenant is no header here: the verb sends it itself */
    int timeout_s;       /* 0: the default */
};

struct command {
    const char *name;
    const struct verb *verbs;
    size_t verb_count;
};

struct session {
    const struct verb *verb;
    struct options opt;
    const char *arg;
    const char *arg2;
    const char *arg3;
    const char *arg4; /* NULL: left out */
    const char *tenant;
    const char *idempotency_key; /* as given; NULL: one is made for each change */
    const char *if_match;        /* of the next request; NULL: none */
    bool json;
    struct private_server private_server;
    struct client_setup setup;
    struct client client;
    int64_t wait_ms;     /* how long the server is asked to wait */
    struct buf path;     /* of the next request */
    struct buf body;     /* empty: none */
    struct json_out out; /* writes into body */
    struct reply reply;
    json_t *answer; /* of the last call; NULL when it had no body */
};

extern const struct flag SESSION_COMMON_FLAGS[];
extern const struct flag SESSION_STORE_FLAGS[];

/* Reads the flags from argv[from…] and finds the server. session_close is due whatever it returns.
 * With s->opt.help set nothing else has been done. */
MUST_CHECK enum cli_exit session_open(struct session *s, const struct verb *verb, int argc,
                                      char **argv, int from);
/* Returns rc, or something worse when the private server did not end well. */
enum cli_exit session_close(struct session *s, enum cli_exit rc);

/* --- building the request --- */

/* prefix, then id escaped, then suffix; empty ones are left out. */
void session_path(struct session *s, const char *prefix, const char *id, const char *suffix);
/* Another id, escaped, and what follows it. */
void session_path_on(struct session *s, const char *id, const char *suffix);
/* Adds name=value to the path; nothing when value is NULL. */
void session_query(struct session *s, const char *name, const char *value);
/* Adds a member when the flag was given; a number's word becomes null. */
void session_add_text(struct session *s, const char *member, const char *flag);
void session_add_number(struct session *s, const char *member, const char *flag);
/* What a claim says besides: `worker_id` by --worker-id, else host and process; `queues` by
 * --queue.
 */
void session_add_worker(const struct session *s, struct json_out *out);
void session_add_queues(const struct session *s, struct json_out *out);
/* As above, of a flag that takes JSON, @file or -. */
MUST_CHECK enum cli_exit session_add_json(struct session *s, const char *member, const char *flag);
/* The same of an argument; nothing when value is NULL. `source` names it when it is wrong. */
MUST_CHECK enum cli_exit session_add_json_arg(struct session *s, const char *member,
                                              const char *source, const char *value);

/* --- calling --- */

/* Sends the request and leaves the answer in s->answer. Then prints it with --json, or hands it to
 * show (NULL: nothing is shown). A refusal is printed here. */
MUST_CHECK enum cli_exit session_call(struct session *s, const char *method,
                                      void (*show)(struct session *s, json_t *answer));
/* GETs a list from the cursor on (NULL: from its start), to its end when all is set, and shows it
 * as one table. With --json each page is a line. */
MUST_CHECK enum cli_exit session_list(struct session *s, const struct column *columns,
                                      size_t column_count, const char *cursor, bool all);
/* The same as --limit, --cursor and --all say. */
MUST_CHECK enum cli_exit session_pages(struct session *s, const struct column *columns,
                                       size_t column_count);
/* For session_call: every member of the answer. */
void session_show_object(struct session *s, json_t *answer);
/* Says on standard error why the server refused (s->reply), or why there is no answer. */
void session_refused(const struct session *s);
void session_unreachable(const struct session *s);
/* The same for one whose session is not used. */
void refusal_print(const struct reply *r);

/* The flags of session_pages. */
#define SESSION_PAGE_FLAGS                                                                \
    {.name = "limit", .value = "N", .help = "items in a page", .number = true, .min = 1}, \
        {.name = "cursor", .value = "C", .help = "go on where a page ended"},             \
    {                                                                                     \
        .name = "all", .help = "follow the pages to the end"                              \
    }

#endif
