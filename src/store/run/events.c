/* Timelines of runs and entities as rows. */
#include "store/run/events.h"

#include "base/json_out.h"
#include "base/limits.h"
#include "store/columns.h"
#include "store/run/jobs.h"
#include "store/run/runs.h"

#define EVENT_COLUMNS(X, p)          \
    X(p, 1, COUNT, seq, seq)         \
    X(p, 2, TIME, at, at)            \
    X(p, 3, TEXT, type, type)        \
    X(p, 4, TEXT, data, data)        \
    X(p, 5, COUNT_OR_NONE, job, job) \
    X(p, 6, TEXT, published_as, published_as)
COLUMNS_NUMBERED(EVENT_COLUMNS, EVENT);
#define SELECT_ROWS COLUMNS_SELECT(EVENT_COLUMNS, "") " FROM timeline_rows"

/* --- packing --- */

/* Text without a character that needs an escape. */
static void put_plain(struct buf *out, struct str text)
{
    size_t end = out->len + text.len + 2;
    json_put_text(out, text);
    assert(!buf_ok(out) || out->len == end);
}

/* How many of the members an item has. */
static int members_of(const struct event *event)
{
    if (event->published_as.ptr != NULL)
        return 4;
    if (event->job >= 0)
        return 3;
    return event->data.ptr != NULL ? 2 : 1;
}

void event_pack(struct buf *out, const struct event *event)
{
    assert(event->type.len > 0);
    int members = members_of(event);
    buf_put(out, out->len == 0 ? STR("[[") : STR(",["));
    put_plain(out, event->type);
    if (members >= 2) {
        buf_put_char(out, ',');
        buf_put(out, event->data.ptr != NULL ? event->data : STR("null"));
    }
    if (members >= 3) {
        buf_put_char(out, ',');
        if (event->job >= 0)
            buf_put_i64(out, event->job);
        else
            buf_put(out, STR("null"));
    }
    if (members >= 4) {
        buf_put_char(out, ',');
        put_plain(out, event->published_as);
    }
    buf_put_char(out, ']');
}

void event_pack_end(struct buf *out)
{
    buf_put_char(out, ']');
}

/* --- unpacking --- */

struct reader {
    struct str left;
    bool wrong; /* the text is none that event_pack() makes */
};

static bool take(struct reader *r, char c)
{
    if (r->left.len == 0 || r->left.ptr[0] != c)
        return false;
    r->left.ptr++;
    r->left.len--;
    return true;
}

static bool is_plain(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c < 0x20 || c == '"' || c == '\\')
            return false;
    }
    return true;
}

static void expect(struct reader *r, char c)
{
    r->wrong |= !take(r, c);
}

static bool take_null(struct reader *r)
{
    if (r->left.len < 4 || memcmp(r->left.ptr, "null", 4) != 0)
        return false;
    r->left.ptr += 4;
    r->left.len -= 4;
    return true;
}

static struct str taken(struct reader *r, size_t len)
{
    struct str text = {r->left.ptr, len};
    r->left.ptr += len;
    r->left.len -= len;
    return text;
}

/* The length of a string in quotes at `at`, with them; 0: it does not end. */
static size_t quoted_len(const char *at, size_t len)
{
    for (size_t i = 1; i < len; i++) {
        if (at[i] == '"')
            return i + 1;
        if (at[i] == '\\')
            i++;
    }
    return 0;
}

static struct str take_plain(struct reader *r)
{
    size_t len =
        r->left.len > 0 && r->left.ptr[0] == '"' ? quoted_len(r->left.ptr, r->left.len) : 0;
    if (len == 0) {
        r->wrong = true;
        return STR_NONE;
    }
    struct str quoted = taken(r, len);
    struct str text = {quoted.ptr + 1, len - 2};
    r->wrong |= !is_plain(text);
    return text;
}

/* An object as it stands there. Whether it is sound JSON inside is for those who read it. */
static struct str take_object(struct reader *r)
{
    size_t depth = 0;
    size_t at = 0;
    do {
        char c = at < r->left.len ? r->left.ptr[at] : '\0';
        size_t len = c == '"' ? quoted_len(r->left.ptr + at, r->left.len - at) : 1;
        if (c == '\0' || len == 0 || (at == 0 && c != '{')) {
            r->wrong = true;
            return STR_NONE;
        }
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        at += len;
    } while (depth > 0);
    return taken(r, at);
}

static int64_t take_number(struct reader *r)
{
    int64_t number = 0;
    size_t digits = 0;
    while (digits < r->left.len && r->left.ptr[digits] >= '0' && r->left.ptr[digits] <= '9' &&
           number <= JOB_ORDINAL_MAX)
        number = number * 10 + (r->left.ptr[digits++] - '0');
    r->wrong |= digits == 0 || number > JOB_ORDINAL_MAX;
    (void)taken(r, digits);
    return number;
}

static void read_item(struct reader *r, struct event *event)
{
    *event = (struct event){.seq = event->seq + 1, .job = -1};
    expect(r, '[');
    event->type = take_plain(r);
    if (take(r, ',') && !take_null(r))
        event->data = take_object(r);
    if (take(r, ',') && !take_null(r))
        event->job = take_number(r);
    if (take(r, ','))
        event->published_as = take_plain(r);
    expect(r, ']');
    r->wrong |= event->type.len == 0;
}

size_t event_unpack(struct str text, event_unpacked *each, void *ctx)
{
    struct reader r = {.left = text};
    struct event event = {0};
    bool more = true;
    expect(&r, '[');
    do {
        read_item(&r, &event);
        if (!r.wrong && more)
            more = each(ctx, &event);
    } while (!r.wrong && take(&r, ','));
    expect(&r, ']');
    return r.wrong || r.left.len > 0 ? 0 : (size_t)event.seq;
}

/* --- rows --- */

enum err events_append(struct db *db, int64_t owner, int64_t last_seq, int64_t at,
                       struct str packed)
{
    static const char SQL[] = "INSERT INTO timeline (run, seq, at, type, data)"
                              " VALUES ($1, $2, $3, '', $4)";
    runs_note_event(db, owner, last_seq);
    return DB_EXEC_BESIDE(db, SQL, NULL, DB_I(owner), DB_I(last_seq), DB_I(at), DB_T(packed));
}

static bool pass(void *ctx, const struct event *event)
{
    (void)ctx;
    (void)event;
    return true;
}

/* What a row holds, one by one. */
struct row_events {
    int64_t first; /* the number of the row's first event */
    int64_t at;
    int64_t after;   /* only those with larger numbers … */
    int64_t left;    /* … and no more than this */
    struct str type; /* ptr NULL: of all types */
    event_each *each;
    void *ctx;
};

static void show(struct row_events *r, const struct event *event)
{
    if (event->seq <= r->after || r->left == 0 ||
        (r->type.ptr != NULL && !str_eq(event->type, r->type)))
        return;
    r->left--;
    r->each(r->ctx, event);
}

static bool show_packed(void *ctx, const struct event *event)
{
    struct row_events *r = ctx;
    struct event shown = *event;
    shown.seq = r->first - 1 + event->seq;
    shown.at = r->at;
    show(r, &shown);
    return r->left > 0;
}

static void read_row(struct db_rows *rows, struct event *row)
{
    *row = (struct event){EVENT_COLUMNS(COLUMN_READ, rows)};
}

/* The number of the row's first event. A packed row that cannot be read is damage. */
static int64_t first_of(struct db_rows *rows, const struct event *row)
{
    if (row->type.len > 0 || !db_is_whole(rows))
        return row->seq;
    int64_t count = (int64_t)event_unpack(row->data, pass, NULL);
    if (count == 0 || count > row->seq)
        db_damaged(rows, EVENT_AT_data);
    return row->seq - count + 1;
}

static void show_row(struct db_rows *rows, struct row_events *r)
{
    struct event row;
    read_row(rows, &row);
    r->first = first_of(rows, &row);
    r->at = row.at;
    if (db_skip_damaged(rows))
        return;
    if (row.type.len > 0)
        show(r, &row);
    else
        (void)event_unpack(row.data, show_packed, r);
}

enum err events_list(struct db *db, int64_t owner, int64_t after, int64_t limit, event_each *each,
                     void *ctx)
{
    static const char SQL[] = SELECT_ROWS " WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3";
    struct row_events r = {.after = after, .left = limit, .each = each, .ctx = ctx};
    if (limit <= 0)
        return ERR_OK;
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(owner), DB_I(after), DB_I(limit));
    while (r.left > 0 && db_next(rows))
        show_row(rows, &r);
    return db_rows_end(rows);
}

struct newest {
    struct event *ret;
    struct arena *arena;
    bool found;
    bool full; /* no memory */
};

static void keep_newest(void *ctx, const struct event *event)
{
    struct newest *n = ctx;
    *n->ret = *event;
    n->found = true;
    n->full |= !arena_keep(n->arena, &n->ret->type) || !arena_keep(n->arena, &n->ret->data) ||
               !arena_keep(n->arena, &n->ret->published_as);
}

/* Looks at the newest rows below *before, and moves it. */
static enum err seek_newest(struct db *db, int64_t owner, struct str type, int64_t *before,
                            struct newest *newest)
{
    static const char SQL[] =
        SELECT_ROWS " WHERE run = $1 AND seq < $2 AND (type = $3 OR type = '')"
                    " ORDER BY seq DESC LIMIT $4";
    enum { CHUNK = 64 };
    struct row_events r = {.type = type, .each = keep_newest, .ctx = newest};
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(owner), DB_I(*before), DB_T(type), DB_I(CHUNK));
    *before = 0;
    while (!newest->found && db_next(rows)) {
        *before = db_int(rows, EVENT_AT_seq);
        r.left = INT64_MAX; /* the last one of the row counts */
        show_row(rows, &r);
    }
    return db_rows_end(rows);
}

enum err events_newest(struct db *db, int64_t owner, struct str type, struct arena *arena,
                       bool *ret_found, struct event *ret)
{
    struct newest newest = {.ret = ret, .arena = arena};
    enum err e = ERR_OK;
    for (int64_t before = INT64_MAX; e == ERR_OK && before > 0 && !newest.found;)
        e = seek_newest(db, owner, type, &before, &newest);
    *ret_found = newest.found;
    return e == ERR_OK && newest.full ? ERR_NO_MEMORY : e;
}

enum err events_first(struct db *db, int64_t owner, int64_t *ret_seq)
{
    static const char SQL[] = SELECT_ROWS " WHERE run = $1 ORDER BY seq LIMIT 1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(owner));
    *ret_seq = 0;
    if (db_next(rows)) {
        struct event row;
        read_row(rows, &row);
        *ret_seq = first_of(rows, &row);
    }
    return db_rows_end(rows);
}
