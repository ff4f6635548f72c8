/* Runs as rows. */
#define _GNU_SOURCE /* memmem */
#include "store/run/runs.h"

#include "base/env.h"
#include "base/json.h"
#include "base/limits.h"
#include "domain/idempotency.h"
#include "store/columns.h"
#include "store/run/jobs.h"
#include "store/run/late_index.h"

enum { LIST_CHUNK = 256 };

#define COLUMN_BIND_RUN_STATUS(value) COLUMN_BIND_WORD(run_status_name(value))
#define COLUMN_READ_RUN_STATUS(rows, at) COLUMN_READ_WORD(rows, at, run_status_of, RUN_STATUS_COUNT)
#define COLUMN_KEEP_RUN_STATUS(arena, value)

/* What every new run has. The column called version is the revision. */
#define RUN_USUAL_COLUMNS(X, p)                        \
    X(p, 1, COUNT, num, num)                           \
    X(p, 2, UUID, id, id)                              \
    X(p, 3, INT, tenant, tenant)                       \
    X(p, 4, TEXT, workflow_id, workflow_id)            \
    X(p, 5, COUNT, workflow_version, workflow_version) \
    X(p, 6, RUN_STATUS, status, status)                \
    X(p, 7, COUNT, version, revision)                  \
    X(p, 8, INT, priority, priority)                   \
    X(p, 9, TEXT, input, input)                        \
    X(p, 10, TEXT, state, state)                       \
    X(p, 11, TEXT, labels, labels)                     \
    X(p, 12, TEXT, created_by, created_by)             \
    X(p, 13, TIME, created_at, created_at)             \
    X(p, 14, TIME_OR_NONE, started_at, started_at)     \
    X(p, 15, TEXT, progress, progress)                 \
    X(p, 16, COUNT, depth, depth)
/* What most new runs do not have: null. */
#define RUN_SELDOM_COLUMNS(X, p)                            \
    X(p, 17, TEXT, output, output)                          \
    X(p, 18, TEXT, error, error)                            \
    X(p, 19, TIME_OR_NONE, finished_at, finished_at)        \
    X(p, 20, TEXT, traceparent, traceparent)                \
    X(p, 21, TEXT, scopes, scopes)                          \
    X(p, 22, TIME_OR_NONE, deadline_at, deadline_at)        \
    X(p, 23, TIME_OR_NONE, start_at, start_at)              \
    X(p, 24, INT_OR_NONE, parent_run, parent_run)           \
    X(p, 25, COUNT_OR_NONE, parent_ordinal, parent_ordinal) \
    X(p, 26, UUID_OR_NONE, rerun_of, rerun_of)              \
    X(p, 27, TEXT, tracestate, tracestate)
#define RUN_COLUMNS(X, p) RUN_USUAL_COLUMNS(X, p) RUN_SELDOM_COLUMNS(X, p)
COLUMNS_NUMBERED(RUN_COLUMNS, RUN);
COLUMNS_SHAPE(RUN_SHAPE, struct run, RUN_COLUMNS);

/* Besides the columns the number of the last event is read. */
#define SELECT_RUNS                                                                         \
    COLUMNS_SELECT(RUN_COLUMNS, "")                                                         \
    ", COALESCE((SELECT seq FROM timeline WHERE run = runs.num ORDER BY seq DESC LIMIT 1)," \
    " first_seq) FROM runs"

enum err runs_last_num(struct db *db, int64_t *ret)
{
    static const char SQL[] = "SELECT COALESCE(MAX(num), 0) FROM runs";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    int64_t last = db_next(rows) ? db_count(rows, 0) : 0;
    enum err e = db_rows_end(rows);
    if (e != ERR_OK)
        return e;
    int64_t through;
    e = late_index_through(db, &through);
    if (e != ERR_OK)
        return e;
    *ret = MAX(last, through); /* the last runs may have been removed after their retention */
    return ERR_OK;
}

int64_t runs_new_num(struct uuid *id, int64_t last_num, struct db_numbers numbers)
{
    int64_t num = db_numbers_from(numbers, MAX(uuid_time(*id), last_num + 1));
    uuid_set_time(id, num);
    return num;
}

int64_t runs_num_ms(int64_t num)
{
    return num >> 12; /* uuid_time() counts in 4096ths of a millisecond */
}

/* --- rows in memory --- */

enum { VERSION_UNKNOWN = -1 }; /* of a row in memory: its last event has not been written since */

static void remember(struct db *db, const struct run *r, int64_t version)
{
    struct run row = *r;
    row.version = version;
    row.first_events = STR_NONE;
    row.key = NULL;
    row.key_num = 0;
    (void)row_cache_put(db_row_cache(db), &RUN_SHAPE, r->num, 0, &row);
}

/* What runs_update() writes. */
static void remember_change(struct db *db, const struct run *r)
{
    const struct run *old = row_cache_peek(db_row_cache(db), &RUN_SHAPE, r->num, 0);
    if (old == NULL)
        return;
    struct run row = *old;
    row.status = r->status;
    row.revision = r->revision;
    row.state = r->state;
    row.output = r->output;
    row.error = r->error;
    row.started_at = r->started_at;
    row.finished_at = r->finished_at;
    row.progress = r->progress;
    row.scopes = r->scopes;
    row.deadline_at = r->deadline_at;
    row.start_at = r->start_at;
    remember(db, &row, old->version);
}

void runs_note_event(struct db *db, int64_t num, int64_t seq)
{
    struct run *row = row_cache_peek(db_row_cache(db), &RUN_SHAPE, num, 0);
    if (row != NULL)
        row->version = seq;
}

static bool recall(struct db *db, int64_t num, struct arena *arena, struct run *ret)
{
    const struct run *row = row_cache_peek(db_row_cache(db), &RUN_SHAPE, num, 0);
    return row != NULL && row->version != VERSION_UNKNOWN &&
           row_cache_find(db_row_cache(db), &RUN_SHAPE, num, 0, arena, ret);
}

/* --- rows --- */

static bool skip(struct str *text, struct str head)
{
    if (text->len < head.len || memcmp(text->ptr, head.ptr, head.len) != 0)
        return false;
    text->ptr += head.len;
    text->len -= head.len;
    return true;
}

static bool skip_number(struct str *text, int64_t number)
{
    size_t digits = 0;
    int64_t read;
    while (digits < text->len && text->ptr[digits] >= '0' && text->ptr[digits] <= '9')
        digits++;
    return str_to_i64((struct str){text->ptr, digits}, &read) && read == number &&
           skip(text, (struct str){text->ptr, digits});
}

#define CREATED "[[\"run.created\""
#define JOB_ID "{\"job_id\":\""
enum { SHORTENED_MAX = KIB };

/* The first data of events and what follows. Types have no brace, so the first one begins it. */
static struct str first_data(struct str events)
{
    const char *data = memchr(events.ptr, '{', events.len);
    return data != NULL ? (struct str){data, (size_t)(events.ptr + events.len - data)} : STR("");
}

/* Skips the id of the run's first job. */
static bool skip_first_job(struct str *text, const struct run *r)
{
    char id[UUID_TEXT_LEN];
    uuid_put(id, jobs_first_id(r->id));
    return skip(text, (struct str){id, sizeof(id)});
}

/* The first events without the data of run.created and without the id of the first job, if that is
 * exactly what the view first_timeline_rows makes of the row's other columns. Longer texts are kept
 * whole: for them it would save little. */
static struct str shorten_events(const struct run *r, char shortened[static SHORTENED_MAX])
{
    struct str rest = r->first_events;
    if (rest.ptr == NULL || rest.len > SHORTENED_MAX ||
        !skip(&rest, STR(CREATED ",{\"workflow_id\":\"")) || !skip(&rest, r->workflow_id) ||
        !skip(&rest, STR("\",\"workflow_version\":")) || !skip_number(&rest, r->workflow_version) ||
        !skip(&rest, STR(",\"created_by\":\"")) || !skip(&rest, r->created_by) ||
        !skip(&rest, STR("\"}]")))
        return r->first_events;
    struct str data = first_data(rest);
    bool of_job = skip(&data, STR(JOB_ID));
    if (of_job && str_starts_with(data, STR("\""))) /* as if it was left out */
        return r->first_events;
    const struct str head = STR(CREATED "]");
    char *at = mempcpy(shortened, head.ptr, head.len);
    const char *id = data.ptr;
    if (of_job && skip_first_job(&data, r)) {
        at = mempcpy(at, rest.ptr, (size_t)(id - rest.ptr));
        rest = data;
    }
    at = mempcpy(at, rest.ptr, rest.len);
    return (struct str){shortened, (size_t)(at - shortened)};
}

/* For lists of children and reruns. */
static enum err insert_family(struct db *db, const struct run *r)
{
    static const char SQL_CHILD[] = "INSERT INTO run_children (parent, run) VALUES ($1, $2)";
    static const char SQL_RERUN[] = "INSERT INTO run_reruns (rerun_of, run) VALUES ($1, $2)";
    enum err e = ERR_OK;
    if (r->parent_run >= 0)
        e = DB_EXEC_BESIDE(db, SQL_CHILD, NULL, DB_I(r->parent_run), DB_I(r->num));
    if (e == ERR_OK && !uuid_is_nil(r->rerun_of))
        e = DB_EXEC_BESIDE(db, SQL_RERUN, NULL, DB_U(r->rerun_of), DB_I(r->num));
    return e;
}

/* What is inserted beside the columns. */
struct run_birth_row {
    struct db_value first_seq, first_events, first_queue, first_due;
    struct db_value key, key_hashes, born;
    struct db_value key_num, key_route; /* most are null */
};

/* Writes the run's columns and what is beside them. Columns that are null for most runs are left
 * out of the first statement, which is used when all of them are. */
static enum err insert_row(struct db *db, const struct run *r, const struct run_birth_row *b)
{
#define BORN_COLUMNS "first_seq, first_events, first_queue, first_due, key, key_hashes, born"
#define BORN_VALUES \
    b->first_seq, b->first_events, b->first_queue, b->first_due, b->key, b->key_hashes, b->born
    static const char SQL_USUAL[] = COLUMNS_INSERT_WITH("runs", RUN_USUAL_COLUMNS, BORN_COLUMNS,
                                                        "$17, $18, $19, $20, $21, $22, $23");
    static const char SQL[] =
        COLUMNS_INSERT_WITH("runs", RUN_COLUMNS, BORN_COLUMNS ", key_num, key_route",
                            "$28, $29, $30, $31, $32, $33, $34, $35, $36");
    const struct db_value seldom[] = {
        RUN_SELDOM_COLUMNS(COLUMN_BIND, r) b->key_num,
        b->key_route,
    };
    bool usual = true;
    for (size_t i = 0; i < ARRAY_LEN(seldom); i++)
        usual &= seldom[i].kind == DB_NULL;
    return usual
               ? DB_EXEC_BESIDE(db, SQL_USUAL, NULL, RUN_USUAL_COLUMNS(COLUMN_BIND, r) BORN_VALUES)
               : DB_EXEC_BESIDE(db, SQL, NULL, RUN_COLUMNS(COLUMN_BIND, r) BORN_VALUES, b->key_num,
                                b->key_route);
#undef BORN_COLUMNS
#undef BORN_VALUES
}

enum err runs_insert(struct db *db, const struct run *r)
{
    const struct run_key *k = r->key;
    char shortened[SHORTENED_MAX];
    unsigned char hashes[RUN_KEY_HASHES_LEN];
    const struct job from_run = {
        .owner = r->num,
        .id = jobs_first_id(r->id),
        .tenant = r->tenant,
        .urgency = -r->priority,
        .created_at = r->created_at,
    };
    const struct job *first;
    enum err e = jobs_put_first(db, &from_run, &first);
    if (e != ERR_OK)
        return e;
    struct run_birth_row b = {
        .first_seq = r->first_events.ptr != NULL ? DB_I(r->version) : DB_N(),
        .first_events = DB_T(shorten_events(r, shortened)),
        .first_queue = first != NULL ? DB_T(first->queue) : DB_N(),
        .first_due = first != NULL ? DB_I_OR_NULL(first->due_at) : DB_N(),
        .key_num = r->key_num > 0 ? DB_I(r->key_num) : DB_N(),
    };
    if (k != NULL) {
        memcpy(hashes, k->fingerprint.bytes, SHA256_LEN);
        memcpy(hashes + SHA256_LEN, &k->raw_hash, sizeof(k->raw_hash));
        b.key = DB_T(k->key);
        b.key_hashes = DB_B(hashes, sizeof(hashes));
        b.born = DB_T(k->born);
        b.key_route = idem_is_start_route(k->route, r->workflow_id) ? DB_N() : DB_T(k->route);
    }
    e = insert_row(db, r, &b);
    if (e == ERR_OK)
        e = insert_family(db, r);
    if (e == ERR_OK)
        remember(db, r, r->first_events.ptr != NULL ? r->version : VERSION_UNKNOWN);
    return e;
}

enum err runs_update(struct db *db, struct run *r)
{
    static const char SQL[] =
        "UPDATE runs SET status = $3, version = version + 1, state = $4, output = $5,"
        " error = $6, started_at = $7, finished_at = $8, progress = $9, scopes = $10,"
        " deadline_at = $11, start_at = $12 WHERE num = $1 AND version = $2";
    int64_t changed = 0;
    enum err e = DB_EXEC_BESIDE(db, SQL, &changed, DB_I(r->num), DB_I(r->revision),
                                DB_T(str_of(run_status_name(r->status))), DB_T(r->state),
                                DB_T(r->output), DB_T(r->error), DB_I_OR_NULL(r->started_at),
                                DB_I_OR_NULL(r->finished_at), DB_T(r->progress), DB_T(r->scopes),
                                DB_I_OR_NULL(r->deadline_at), DB_I_OR_NULL(r->start_at));
    if (e != ERR_OK)
        return e;
    if (changed != 1)
        return ERR_CONCURRENCY;
    r->revision++;
    remember_change(db, r);
    return ERR_OK;
}

static void read_row(struct db_rows *rows, struct run *r)
{
    *r = (struct run){RUN_COLUMNS(COLUMN_READ, rows)};
    r->version = db_count_or(rows, RUN_COLUMNS_END, 0);
}

COLUMNS_READ_ONE(read_one, struct run, RUN_COLUMNS, read_row);

enum err runs_find_trace(struct db *db, int64_t num, struct arena *arena, bool *ret_found,
                         struct run *ret)
{
    static const char SQL[] = "SELECT id, traceparent, tracestate FROM runs WHERE num = $1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(num));
    struct run run = {.num = num};
    bool found = db_next(rows);
    bool kept = true;
    if (found) {
        run.id = db_uuid(rows, 0);
        run.traceparent = db_str(rows, 1);
        run.tracestate = db_str(rows, 2);
        kept = arena_keep(arena, &run.traceparent) && arena_keep(arena, &run.tracestate);
    }
    enum err e = db_rows_end(rows);
    if (e != ERR_OK || !kept)
        return e != ERR_OK ? e : ERR_NO_MEMORY;
    *ret_found = found;
    if (found)
        *ret = run;
    return ERR_OK;
}

enum err runs_find(struct db *db, int64_t tenant, struct uuid id, struct arena *arena,
                   bool *ret_found, struct run *ret)
{
    enum err e = runs_find_num(db, uuid_time(id), arena, ret_found, ret);
    *ret_found = e == ERR_OK && *ret_found && ret->tenant == tenant && uuid_eq(ret->id, id);
    return e;
}

enum err runs_find_num(struct db *db, int64_t num, struct arena *arena, bool *ret_found,
                       struct run *ret)
{
    static const char SQL[] = SELECT_RUNS " WHERE num = $1";
    *ret_found = recall(db, num, arena, ret);
    if (*ret_found)
        return ERR_OK;
    enum err e = read_one(DB_QUERY(db, SQL, DB_I(num)), arena, ret_found, ret);
    if (e == ERR_OK && *ret_found)
        remember(db, ret, ret->version);
    return e;
}

enum err runs_is_of(struct db *db, int64_t num, struct str workflow_id, bool *ret)
{
    static const char SQL[] = "SELECT 1 FROM runs WHERE num = $1 AND workflow_id = $2";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(num), DB_T(workflow_id));
    *ret = db_next(rows);
    return db_rows_end(rows);
}

/* --- lists --- */

static bool has_label(const struct json *labels, struct str name, struct str value)
{
    const struct json *found = json_member(labels, name);
    return json_is(found, JSON_KIND_TEXT) && str_eq(json_text_of(found), value);
}

static char small_letter(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Of a long error the beginning counts. */
static bool has_error(struct str error, struct str part)
{
    char text[RUN_SEARCH_ERROR_MAX];
    size_t len = MIN(error.len, sizeof(text));
    for (size_t i = 0; i < len; i++)
        text[i] = small_letter(error.ptr[i]);
    return memmem(text, len, part.ptr, part.len) != NULL;
}

/* ERR_OK, or why the labels cannot be read. */
static enum err labels_fit(const struct run_filter *f, const struct run *r, bool *ret)
{
    const struct run_search *s = f->search;
    bool searched = s == NULL || (r->error.len > 0 && has_error(r->error, s->error));
    bool by_label = !searched && s->label_name.ptr != NULL;
    *ret = searched && f->label_name.ptr == NULL;
    if ((!by_label && f->label_name.ptr == NULL) || r->labels.len == 0)
        return ERR_OK;
    struct json *labels = NULL;
    enum err e = json_read_kept(r->labels, &labels);
    if (e == ERR_OK)
        *ret = (searched || (by_label && has_label(labels, s->label_name, s->label_value))) &&
               (f->label_name.ptr == NULL || has_label(labels, f->label_name, f->label_value));
    json_free(labels);
    return e;
}

static bool has_id(const struct run_filter *f, struct uuid id)
{
    return memcmp(id.bytes, f->id_low.bytes, sizeof(id.bytes)) >= 0 &&
           memcmp(id.bytes, f->id_high.bytes, sizeof(id.bytes)) <= 0;
}

static bool columns_fit(const struct run_filter *f, const struct run *r)
{
    return (f->statuses == RUN_ANY_STATUS || (f->statuses & run_status_bit(r->status)) != 0) &&
           (f->workflow_id.ptr == NULL || str_eq(f->workflow_id, r->workflow_id)) &&
           (f->created_after < 0 || r->created_at > f->created_after) &&
           (f->created_before < 0 || r->created_at < f->created_before) &&
           (uuid_is_nil(f->id_high) || has_id(f, r->id)) &&
           (f->parent_run == 0 || f->parent_run == r->parent_run) &&
           (uuid_is_nil(f->rerun_of) || uuid_eq(f->rerun_of, r->rerun_of));
}

bool runs_fit(const struct run_filter *f, const struct run *r)
{
    bool fits = false;
    return r->tenant == f->tenant && columns_fit(f, r) && labels_fit(f, r, &fits) == ERR_OK && fits;
}

static bool matches(struct db_rows *rows, const struct run_filter *f, const struct run *r)
{
    bool fits = false;
    if (columns_fit(f, r))
        db_understood(rows, RUN_AT_labels, labels_fit(f, r, &fits));
    return fits;
}

/* Which rows are looked at. */
enum walk {
    WALK_ALL,      /* the tenant's, in the order of their making */
    WALK_BADLY,    /* those that ended badly, of one status: people look for them */
    WALK_BADLIES,  /* of several */
    WALK_CHILDREN, /* of a run */
    WALK_RERUNS,
};

/* The words of the index of runs that ended badly. */
#define ENDED_BADLY \
    "(status = 'failed' OR status = 'denied' OR status = 'cancelled' OR status = 'timed_out')"
static const enum run_status BAD_ENDS[] = {RUN_FAILED, RUN_DENIED, RUN_CANCELLED, RUN_TIMED_OUT};
enum { BAD_END_COUNT = ARRAY_LEN(BAD_ENDS) };

static unsigned bad_ends(void)
{
    unsigned bits = 0;
    for (size_t i = 0; i < BAD_END_COUNT; i++)
        bits |= run_status_bit(BAD_ENDS[i]);
    return bits;
}

/* A search by text alone finds only runs with an error. */
static unsigned statuses_sought(const struct run_filter *f)
{
    bool by_error = f->search != NULL && f->search->label_name.ptr == NULL;
    unsigned wanted = f->statuses == RUN_ANY_STATUS ? ~0u : f->statuses;
    return by_error ? wanted & bad_ends() : wanted;
}

static enum walk walk_of(const struct run_filter *f)
{
    unsigned sought = statuses_sought(f);
    if (f->parent_run != 0)
        return WALK_CHILDREN;
    if (!uuid_is_nil(f->rerun_of))
        return WALK_RERUNS;
    if ((sought & ~bad_ends()) != 0)
        return WALK_ALL;
    return (sought & (sought - 1)) == 0 && sought != 0 ? WALK_BADLY : WALK_BADLIES;
}

static struct db_rows *query_badly(struct db *db, const struct run_filter *f, int64_t before)
{
    static const char SQL[] = SELECT_RUNS " WHERE tenant = $1 AND status = $2 AND num < $3"
                                          " AND " ENDED_BADLY " ORDER BY num DESC LIMIT $4";
    enum run_status status = RUN_FAILED;
    while ((statuses_sought(f) & run_status_bit(status)) == 0)
        status++;
    return DB_QUERY(db, SQL, DB_I(f->tenant), DB_T(str_of(run_status_name(status))), DB_I(before),
                    DB_I(LIST_CHUNK));
}

/* The newest of each status, of which the newest are taken. */
static struct db_rows *query_badlies(struct db *db, const struct run_filter *f, int64_t before)
{
    /* clang-format off */
#define OF_STATUS(parameter, name)                                                    \
    "SELECT num FROM (SELECT num FROM runs WHERE tenant = $1 AND status = " parameter \
    " AND num < $2 AND " ENDED_BADLY " ORDER BY num DESC LIMIT $3) AS " name
    static const char SQL[] =
        SELECT_RUNS " WHERE num IN (SELECT num FROM (" OF_STATUS("$4", "a") " UNION ALL "
        OF_STATUS("$5", "b") " UNION ALL " OF_STATUS("$6", "c") " UNION ALL " OF_STATUS("$7", "d")
        ") AS ended ORDER BY num DESC LIMIT $3) ORDER BY num DESC";
    /* clang-format on */
    struct db_value words[BAD_END_COUNT];
    for (size_t i = 0; i < BAD_END_COUNT; i++) {
        bool sought = (statuses_sought(f) & run_status_bit(BAD_ENDS[i])) != 0;
        words[i] = sought ? DB_T(str_of(run_status_name(BAD_ENDS[i]))) : DB_T(STR(""));
    }
    return DB_QUERY(db, SQL, DB_I(f->tenant), DB_I(before), DB_I(LIST_CHUNK), words[0], words[1],
                    words[2], words[3]);
}

static struct db_rows *query_family(struct db *db, const struct run_filter *f, enum walk walk,
                                    int64_t before)
{
    static const char SQL_CHILDREN[] =
        SELECT_RUNS " WHERE num IN (SELECT run FROM run_children WHERE parent = $1 AND run < $2"
                    " ORDER BY run DESC LIMIT $4) AND tenant = $3 ORDER BY num DESC";
    static const char SQL_RERUNS[] =
        SELECT_RUNS " WHERE num IN (SELECT run FROM run_reruns WHERE rerun_of = $1 AND run < $2"
                    " ORDER BY run DESC LIMIT $4) AND tenant = $3 ORDER BY num DESC";
    struct db_value whose = walk == WALK_CHILDREN ? DB_I(f->parent_run) : DB_U(f->rerun_of);
    return DB_QUERY(db, walk == WALK_CHILDREN ? SQL_CHILDREN : SQL_RERUNS, whose, DB_I(before),
                    DB_I(f->tenant), DB_I(LIST_CHUNK));
}

/* All are read in the order of their making: first what is not in the index yet, then along it. */
static struct db_rows *query_recent(struct db *db, const struct run_filter *f, int64_t before,
                                    int64_t through)
{
    static const char SQL[] = SELECT_RUNS " WHERE num > $1 AND num < $2"
                                          " AND tenant = $3 ORDER BY num DESC LIMIT $4";
    return DB_QUERY(db, SQL, DB_I(through), DB_I(before), DB_I(f->tenant), DB_I(LIST_CHUNK));
}

enum { INDEXED_CHUNK = 32 };

/* Those of these numbers that are the tenant's. */
static struct db_rows *query_indexed(struct db *db, const struct run_filter *f, const int64_t *nums,
                                     size_t count)
{
    static const char SQL[] =
        SELECT_RUNS " WHERE num IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,"
                    " $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29,"
                    " $30, $31, $32) AND tenant = $33 ORDER BY num DESC";
    struct db_value values[INDEXED_CHUNK + 1];
    for (size_t i = 0; i < INDEXED_CHUNK; i++)
        values[i] = DB_I(i < count ? nums[i] : 0);
    values[INDEXED_CHUNK] = DB_I(f->tenant);
    return db_query_values(db, SQL, values, ARRAY_LEN(values));
}

static struct db_rows *list_query(struct db *db, const struct run_filter *f, enum walk walk,
                                  int64_t before, int64_t through)
{
    switch (walk) {
    case WALK_ALL:
        return query_recent(db, f, before, through);
    case WALK_BADLY:
        return query_badly(db, f, before);
    case WALK_BADLIES:
        return query_badlies(db, f, before);
    case WALK_CHILDREN:
    case WALK_RERUNS:
        return query_family(db, f, walk, before);
    }
    assert(!"unknown walk");
    return NULL;
}

/* A list as far as it has come. */
struct run_list {
    struct db *db;
    const struct run_filter *filter;
    enum walk walk;
    int64_t through; /* of the index */
    run_each *each;
    void *ctx;
    int64_t before; /* where the next chunk starts */
    int64_t scanned;
    bool full; /* the reader wants no more */
    bool more; /* there may be more */
};

/* Passes on the rows that fit. Returns how many it read. */
static int64_t pass_on(struct run_list *l, struct db_rows *rows)
{
    int64_t count = 0;
    while (db_next(rows)) {
        struct run r;
        read_row(rows, &r);
        bool fits = matches(rows, l->filter, &r);
        bool damaged = db_skip_damaged(rows);
        if (fits && !damaged && !l->each(l->ctx, &r)) {
            l->full = true;
            break;
        }
        count++;
        l->before = r.num;
    }
    l->scanned += count;
    return count;
}

/* One query's worth. */
static enum err list_chunk(struct run_list *l)
{
    struct db_rows *rows = list_query(l->db, l->filter, l->walk, l->before, l->through);
    l->more = pass_on(l, rows) == LIST_CHUNK;
    if (!l->more && !l->full && l->walk == WALK_ALL) {
        l->before = l->through + 1; /* go on along the index */
        l->more = true;
    }
    return db_rows_end(rows);
}

/* The same along the index. A run that it has and that does not exist is passed over. */
static enum err list_indexed_chunk(struct run_list *l)
{
    int64_t nums[INDEXED_CHUNK];
    size_t count = 0;
    const struct run_walk walk = {l->filter->tenant, l->before, .down = true};
    enum err e = run_blocks_list(l->db, &walk, nums, INDEXED_CHUNK, &count);
    l->more = e == ERR_OK && count == INDEXED_CHUNK;
    if (e != ERR_OK || count == 0)
        return e;
    struct db_rows *rows = query_indexed(l->db, l->filter, nums, count);
    (void)pass_on(l, rows);
    if (!l->full)
        l->before = nums[count - 1];
    return db_rows_end(rows);
}

enum err runs_list(struct db *db, const struct run_filter *filter, int64_t before, run_each *each,
                   void *ctx, int64_t *ret_next)
{
    struct run_list l = {.db = db,
                         .filter = filter,
                         .walk = walk_of(filter),
                         .each = each,
                         .ctx = ctx,
                         .before = before,
                         .more = true};
    int64_t scan_max = filter->search != NULL ? RUN_SEARCH_SCAN_MAX : PAGE_SCAN_MAX;
    /* A run's num is the time in its id, so ids are a range of nums. */
    int64_t lowest = uuid_time(filter->id_low);
    if (!uuid_is_nil(filter->id_high))
        l.before = MIN(before, uuid_time(filter->id_high) + 1);
    enum err e = late_index_through(db, &l.through);
    while (e == ERR_OK && !l.full && l.more && l.scanned < scan_max) {
        bool indexed = l.walk == WALK_ALL && l.before <= l.through + 1;
        e = indexed ? list_indexed_chunk(&l) : list_chunk(&l);
        l.more = l.more && l.before > lowest;
    }
    *ret_next = l.full || l.more ? l.before : -1;
    return e;
}
