/* One command in progress: its options, its server, its request and the answer.
 *
 * A verb fills in the path and perhaps the body, calls the server and prints the answer for people.
 * The session does what all verbs share: idempotency keys, retries, --json, refusals, pages and
 * exit codes. */
#ifndef PAWL_CLI_SESSION_H
#define PAWL_CLI_SESSION_H

#include "base/json_tree.h"
#include "base/options.h"
#include "cli/client.h"
#include "cli/private_server.h"
#include "cli/setup/contexts.h"
#include "cli/term/table.h"

struct id_list;
struct session;

/* One command with its verb, as `pawl run start`. */
struct verb {
    const char *name;      /* "start" or "type set"; NULL: the command has no verbs */
    const char *arguments; /* "ID NAME [PAYLOAD]"; NULL: none */
    const char *command;   /* "COMMAND [ARG...]", after `--`; NULL: none */
    const char *about;     /* one line without a full stop */
    const char *notes;     /* more, at the end of its help; NULL: none */
    const struct option *options;
    const struct option *more_options; /* of a standalone verb; NULL: none */
    const struct id_list *ids; /* of the first argument, which may be a prefix; NULL: no id */
    enum cli_exit (*run)(struct session *s);
    /* Instead of run: gets the whole command line and returns the exit code. */
    int (*standalone)(int argc, char **argv);
    bool local;          /* calls no server, so it has no common options */
    bool store;          /* can work on a data file with --store */
    bool tenant_in_body; /* --tenant goes into the body, which the verb writes, not into a header */
    int timeout_s;       /* 0: the default */
};

struct session {
    const struct verb *verb;
    struct options opt;
    const char *const *args; /* of the verb, in order; NULL where left out */
    char resolved_id[40];    /* of the first argument */
    const char *tenant;
    const char *idempotency_key; /* as given; NULL: each change gets a random one */
    const char *if_match;        /* of the next request; NULL: none */
    bool json;
    struct private_server private_server;
    json_t *contexts; /* the file of them; NULL: not read */
    struct buf key;   /* of the context */
    struct client_setup setup;
    struct client client;
    int64_t wait_ms;     /* how long the server may hold the request */
    struct buf path;     /* of the next request */
    struct buf body;     /* empty: none */
    struct json_out out; /* writes into body */
    struct reply reply;
    json_t *answer; /* of the last call; NULL when it had no body */
};

extern const struct option SESSION_COMMON_OPTIONS[];
extern const struct option SESSION_STORE_OPTIONS[];

/* Reads the options from argv[from…] and finds the server. Call session_close whatever it returns.
 * With s->opt.help set, it has done nothing else. */
MUST_CHECK enum cli_exit session_open(struct session *s, const struct verb *verb, int argc,
                                      char **argv, int from);
/* Returns rc, or CLI_REFUSED when the private server failed to stop. */
enum cli_exit session_close(struct session *s, enum cli_exit rc);

/* --- building the request --- */

/* prefix, then the escaped id, then suffix; any of them may be empty. */
void session_path(struct session *s, const char *prefix, const char *id, const char *suffix);
/* Appends another escaped id and a suffix. */
void session_path_on(struct session *s, const char *id, const char *suffix);
/* Adds name=value to the path; nothing when value is NULL. */
void session_query(struct session *s, const char *name, const char *value);
/* Adds a member to the body when the option has a value; the word of a number becomes null. */
void session_add_text(struct session *s, const char *member, const char *option);
void session_add_number(struct session *s, const char *member, const char *option);
/* The members of a claim: `worker_id` from --worker-id, or made of host and process; `queues` from
 * --queue. */
void session_add_worker(const struct session *s, struct json_out *out);
void session_add_queues(const struct session *s, struct json_out *out);
/* The same for an option that takes JSON, @FILE or -. */
MUST_CHECK enum cli_exit session_add_json(struct session *s, const char *member,
                                          const char *option);
/* The same for an argument; nothing when value is NULL. Errors name `source`. */
MUST_CHECK enum cli_exit session_add_json_arg(struct session *s, const char *member,
                                              const char *source, const char *value);

/* --- calling --- */

/* Sends the request and leaves the answer in s->answer. Prints it with --json, otherwise calls show
 * (NULL: prints nothing). Prints a refusal. */
MUST_CHECK enum cli_exit session_call(struct session *s, const char *method,
                                      void (*show)(struct session *s, json_t *answer));
/* The same without printing the answer, even with --json. */
MUST_CHECK enum cli_exit session_call_silently(struct session *s, const char *method);
/* GETs a list from the cursor (NULL: its start), to its end when `all` is set, and prints it as one
 * table. With --json each page is a line. */
MUST_CHECK enum cli_exit session_list(struct session *s, const struct column *columns,
                                      size_t column_count, const char *cursor, bool all);
/* The same, by --limit, --cursor and --all. */
MUST_CHECK enum cli_exit session_pages(struct session *s, const struct column *columns,
                                       size_t column_count);
/* For session_call: prints every member of the answer. */
void session_show_object(struct session *s, json_t *answer);
/* Print on standard error why the server refused (s->reply), or why there is no answer. */
void session_refused(const struct session *s);
void session_unreachable(const struct session *s);
/* The same for any reply. */
void refusal_print(const struct reply *r);

/* The options of session_pages. */
#define SESSION_PAGE_OPTIONS                                                                    \
    {.name = "limit", .kind = OPTION_NUMBER, .value = "N", .min = 1, .help = "Items per page"}, \
        {.name = "cursor", .value = "CURSOR", .help = "Continue where a page ended"},           \
    {                                                                                           \
        .name = "all", .kind = OPTION_SWITCH, .help = "Fetch all pages"                         \
    }

#endif
