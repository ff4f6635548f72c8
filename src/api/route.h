/* A route as one row: method, path, who may call it, its parameters, and its use case.
 *
 * Everything that a request may say is declared in a table of parameters beside the row. One
 * reader (params.h) checks it and fills the use case's input, and tests compare the same table
 * with docs/openapi.yaml, docs/api.md and the routes that the end-to-end tests call. */
#ifndef PAWL_API_ROUTE_H
#define PAWL_API_ROUTE_H

#include "api/merge/fold.h"
#include "base/fields.h"
#include "base/json.h"
#include "base/limits.h"
#include "core/usecase/use_cases.h"

struct call;
struct subscriber;

/* --- parameters --- */

enum param_where { IN_PATH, IN_QUERY, IN_HEADER, IN_BODY };

/* The type of the value, and of the member it is put into. */
enum param_kind {
    PARAM_TEXT,     /* struct str: at most `max` bytes (0: any), and `valid` if that is set */
    PARAM_NAME,     /* struct str: letters, digits and _ - . : */
    PARAM_INT,      /* int64_t: from `min` to `max`, times `scale` */
    PARAM_BOOL,     /* bool */
    PARAM_ENUM,     /* an enum, or a bool of two words: one of `word` */
    PARAM_ENUMS,    /* unsigned: some of `word`, with commas, a bit for each; 0: none was given */
    PARAM_TIME,     /* int64_t: milliseconds since 1970 */
    PARAM_UUID,     /* struct uuid: anything else is `missing` */
    PARAM_LABEL,    /* struct str: NAME, and VALUE into `second` */
    PARAM_CURSOR,   /* struct str: from an earlier page */
    PARAM_POSITION, /* int64_t: a cursor that is a number */
    PARAM_VERSION,  /* int64_t: "7", as in If-Match */
    PARAM_TAGS,     /* struct str: entity tags, as in If-None-Match */
    PARAM_KEY,      /* no member: the idempotency key, which the fingerprint leaves out */
    PARAM_JSON,     /* struct str: any value as text of at most `max` bytes (0: any), and as a
                       const struct json * into `second` */
    PARAM_OBJECT,   /* struct str, as JSON; and its `members` into the same input */
    PARAM_ARRAY,    /* no member: at most `max` elements, stored by `take` */
};

/* Stores a value of the body by itself: NULL when it is absent or null. What is wrong with it goes
 * to fields_fault(). */
typedef void take_fn(struct call *c, struct fields *f, const struct json *value, void *input);

struct param {
    const char *name;
    enum param_where where;
    enum param_kind kind;
    bool required;
    bool in_call;             /* the member is one of struct call, not of the input */
    bool null_counts;         /* PARAM_JSON: null is a value, not the same as absent */
    uint16_t offset, size;    /* of the member; size 0: none */
    uint16_t second;          /* offset of the second member; 0: none */
    int64_t min, max, scale;  /* scale 0: as it is */
    int64_t initial;          /* when absent: of numbers, times, enums and bools */
    const char *initial_text; /* and of texts and JSON; NULL: ptr NULL */
    bool (*valid)(struct str text);
    const char *must; /* what it must be, if `valid` says no */
    const char *(*word)(unsigned value);
    unsigned word_count;
    enum err missing; /* in a path: there is nothing with such an id */
    take_fn *take;
    const struct param *members; /* of an object, or of each object of an array */
    size_t member_count;
};

/* Into which member of the input, or of struct call. */
#define INTO(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define INTO_CALL(member) .in_call = true, INTO(struct call, member)
#define AND_INTO(type, member) .second = offsetof(type, member)
#define WORDS(name_of, count) .word = name_of, .word_count = count
#define MEMBERS(table) .members = table, .member_count = ARRAY_LEN(table)

/* One row each: QUERY("limit", PARAM_INT, .max = 9, INTO(struct x, limit)). */
#define PATH(name_, kind_, ...)                                     \
    {                                                               \
        .name = name_, .where = IN_PATH, .kind = kind_, __VA_ARGS__ \
    }
#define QUERY(name_, kind_, ...)                                     \
    {                                                                \
        .name = name_, .where = IN_QUERY, .kind = kind_, __VA_ARGS__ \
    }
#define HEADER(name_, kind_, ...)                                     \
    {                                                                 \
        .name = name_, .where = IN_HEADER, .kind = kind_, __VA_ARGS__ \
    }
#define BODY(name_, kind_, ...)                                     \
    {                                                               \
        .name = name_, .where = IN_BODY, .kind = kind_, __VA_ARGS__ \
    }

/* Parameters that many routes have. */
#define PATH_NAME(name, type, member) \
    PATH(name, PARAM_NAME, .max = NAME_MAX_LEN, INTO(type, member))
#define PATH_UUID(name, missing_, type, member) \
    PATH(name, PARAM_UUID, .missing = missing_, INTO(type, member))
#define QUERY_LIMIT(type) \
    QUERY("limit", PARAM_INT, .min = 1, .max = PAGE_MAX, .initial = PAGE_DEFAULT, INTO(type, limit))
#define QUERY_CURSOR(type) QUERY("cursor", PARAM_CURSOR, INTO(type, cursor))
#define QUERY_PAGE(type) QUERY_LIMIT(type), QUERY_CURSOR(type)
#define IF_MATCH(type) HEADER("If-Match", PARAM_VERSION, .initial = -1, INTO(type, if_match))

/* --- routes --- */

enum { PARAMS_MAX = 3 }; /* variable parts of a path */

/* What a route computes after its parameters were read; most compute nothing. An error has its
 * problem set. A large body is read on the body thread: use nothing that the loop shares. */
typedef enum err prepare_fn(struct call *c, void *input);
/* A route that needs no engine: answers by itself. */
typedef void direct_fn(struct call *c);
/* Fills in what the subscriber follows, from where. */
typedef enum err stream_fn(struct call *c, struct subscriber *subscriber);

enum route_flags {
    ROUTE_OPEN = 1,        /* no key needed, and what the query says beyond `params` is ignored */
    ROUTE_NO_TENANT = 2,   /* about the whole server: no tenant header is needed */
    ROUTE_ANY_TENANT = 4,  /* a key for all tenants need not name one */
    ROUTE_SERVER_KEY = 8,  /* needs a key for all tenants */
    ROUTE_ASIDE = 16,      /* served without a key at --metrics-listen, where nothing else is */
    ROUTE_FILE = 32,       /* the answer is the path of a file to send and remove */
    ROUTE_LONG = 64,       /* takes as long as the store is large */
    ROUTE_PERSONAL = 128,  /* another person with the same key makes another request */
    ROUTE_ASKS = 256,      /* an answer without the result says where that will be */
    ROUTE_SHOWS_NOW = 512, /* a replay shows the run as it is now */
    ROUTE_DOCUMENT = 1024, /* the body is a document of its own, which `prepare` reads */
    ROUTE_HANDS_OUT =
        2048, /* jobs: a caller that leaves before it has the answer gives them back */
};

/* Which shards of a store a request concerns, when there are several. */
enum route_scope {
    OF_TENANT,           /* the one of the caller's tenant; all of them for `*` */
    OF_TENANT_AND_FIRST, /* the same, and shard 0, which knows something of every tenant */
    OF_NAMED,            /* the one of the tenant that the path names */
    OF_FIRST,            /* shard 0, where everything is that belongs to no tenant */
    OF_ALL,              /* all of them, whoever asks */
    OF_NODE,             /* none: it concerns the process */
};

/* How the answers of several shards become one (cluster/errand.h). */
enum route_join {
    JOIN_NONE,  /* there is only one */
    JOIN_FIND,  /* the first that is not 404 */
    JOIN_CLAIM, /* the first with jobs; then once more in turn, waiting a little at each */
    JOIN_BATCH, /* until each of the jobs is known to one */
    JOIN_PAGES, /* one list after the other: the cursor says which shard */
    JOIN_ORDER, /* lists merged by the member `ordered_by`: the cursor has a place in each */
    JOIN_FOLD,  /* by `fold` */
    JOIN_CHAIN, /* streams, one after the other */
};

struct route {
    const char *method;
    const char *pattern; /* "{}" stands for one variable part, a last "{*}" for all the rest */
    unsigned may;        /* what the role must allow; 0: nothing */
    unsigned flags;
    const struct use_case *use_case; /* NULL: `direct`, or a stream that has no other form */
    size_t input_size;
    const struct param *params; /* those of the path first, in its order */
    size_t param_count;
    prepare_fn *prepare;
    direct_fn *direct;
    stream_fn *stream;    /* goes on as server-sent events when the client accepts them */
    const char *endpoint; /* of an admission in metrics, if not the use case's own */
    unsigned variant;     /* for `prepare`, where several routes share a use case */
    enum route_scope scope;
    enum route_join join;
    const char *ordered_by; /* JOIN_ORDER: a member of each item, and: */
    const char *place;      /* the one that a cursor is made of */
    const char *place_in;   /* and one that stands before it with a dot, if the item has it */
    fold_fn *fold;          /* JOIN_FOLD; with JOIN_ORDER of what is beside the items, or NULL */
    const char *fold_query; /* what the shards are asked for beside; NULL: nothing */
};

#define TAKES(type, table) \
    .input_size = sizeof(type), .params = table, .param_count = ARRAY_LEN(table)

#endif
