/* The feed: a log of new events in the order of the commits. */
#include "store/outbox/feed.h"

#include "base/digits.h"
#include "store/columns.h"

#define FEED_COLUMNS(X, p)               \
    X(p, 1, COUNT, num, num)             \
    X(p, 2, COUNT, tenant, tenant)       \
    X(p, 3, COUNT, run, owner)           \
    X(p, 4, COUNT, first_seq, first_seq) \
    X(p, 5, COUNT, last_seq, last_seq)   \
    X(p, 6, INT, at, at)
COLUMNS_NUMBERED(FEED_COLUMNS, FEED);
#define SELECT_PACKS COLUMNS_SELECT(FEED_COLUMNS, "") ", earlier FROM feed_packs"

/* --- packs --- */

/* A row in a pack: four numbers, with a bracket on each side and a comma behind each. */
enum {
    PACKED_ROW_MAX = 4 * (DIGITS_MAX + 1) + 2,
    PACK_TEXT_MAX = FEED_PACK_ROWS_MAX * PACKED_ROW_MAX + 2
};

/* The rows before the last one as text; ptr NULL: there are none. */
static struct str pack(const struct feed_row *rows, size_t count, char text[static PACK_TEXT_MAX])
{
    const struct feed_row *last = &rows[count - 1];
    char *at = text;
    if (count == 1)
        return STR_NONE;
    *at++ = '[';
    for (const struct feed_row *r = rows; r < last; r++) {
        *at++ = '[';
        at = digits_put(at, r->tenant);
        *at++ = ',';
        at = digits_put(at, r->owner - last->owner);
        *at++ = ',';
        at = digits_put(at, r->first_seq);
        *at++ = ',';
        at = digits_put(at, r->last_seq);
        *at++ = ']';
        *at++ = ',';
    }
    at[-1] = ']';
    return (struct str){text, (size_t)(at - text)};
}

static bool take_char(struct str *text, char c)
{
    if (text->len == 0 || text->ptr[0] != c)
        return false;
    text->ptr++;
    text->len--;
    return true;
}

/* A number within 60 bits, which has 19 digits at most, and what follows it. */
static bool take_number(struct str *text, int64_t *ret, char follows)
{
    bool negative = take_char(text, '-');
    uint64_t number = 0;
    size_t digits = 0;
    while (digits < text->len && digits < DIGITS_MAX - 1 && text->ptr[digits] >= '0' &&
           text->ptr[digits] <= '9')
        number = number * 10 + (uint64_t)(text->ptr[digits++] - '0');
    text->ptr += digits;
    text->len -= digits;
    if (digits == 0 || number >= (uint64_t)DB_COUNT_END)
        return false;
    *ret = negative ? -(int64_t)number : (int64_t)number;
    return take_char(text, follows);
}

static bool take_count(struct str *text, int64_t *ret, char follows)
{
    return take_number(text, ret, follows) && *ret >= 0;
}

/* A row that has no owner's events ends before it begins. */
static bool is_range(const struct feed_row *row)
{
    return row->last_seq >= row->first_seq - 1;
}

/* The rows before the last one, which is rows[0] and becomes the last of the result. Returns how
 * many there are with it; 0: the text is damaged. */
static size_t unpack(struct str text, struct feed_row rows[static FEED_PACK_ROWS_MAX])
{
    const struct feed_row last = rows[0];
    size_t count = 0;
    do {
        struct feed_row *r = &rows[count++];
        *r = (struct feed_row){.at = last.at};
        if (count == FEED_PACK_ROWS_MAX || !take_char(&text, '[') ||
            !take_count(&text, &r->tenant, ',') || !take_number(&text, &r->owner, ',') ||
            !take_count(&text, &r->first_seq, ',') || !take_count(&text, &r->last_seq, ']'))
            return 0;
        r->owner += last.owner;
        if (r->owner < 0 || !is_range(r))
            return 0;
    } while (take_char(&text, ','));
    if (!take_char(&text, ']') || text.len > 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        rows[i].num = last.num - (int64_t)(count - i);
    rows[count] = last;
    return count + 1;
}

/* The rows of the pack that the query has come to, rising. Returns how many. */
static size_t read_pack(struct db_rows *packs, struct feed_row rows[static FEED_PACK_ROWS_MAX])
{
    struct str text = db_str(packs, FEED_COLUMNS_END);
    rows[0] = (struct feed_row){FEED_COLUMNS(COLUMN_READ, packs)};
    if (!is_range(&rows[0]))
        db_damaged(packs, FEED_AT_last_seq);
    if (text.ptr == NULL)
        return 1;
    size_t count = take_char(&text, '[') ? unpack(text, rows) : 0;
    if (count == 0)
        db_damaged(packs, FEED_COLUMNS_END);
    return count;
}

enum err feed_insert(struct db *db, const struct feed_row *rows, size_t count, struct str counters)
{
    static const char SQL[] =
        COLUMNS_INSERT_WITH("feed_packs", FEED_COLUMNS, "earlier, counters", "$7, $8");
    assert(count > 0 && count <= FEED_PACK_ROWS_MAX);
    const struct feed_row *last = &rows[count - 1];
    char text[PACK_TEXT_MAX];
    assert(last->num - rows[0].num == (int64_t)count - 1 && last->at == rows[0].at);
    return DB_EXEC(db, SQL, NULL, FEED_COLUMNS(COLUMN_BIND, last) DB_T(pack(rows, count, text)),
                   DB_T(counters));
}

/* --- reading --- */

/* Which rows a reader wants, and how far it has come. */
struct feed_walk {
    int64_t after;
    int64_t through;
    int64_t tenant; /* 0: of all tenants */
    bool over;
};

/* Packs that are read at once: an engine across a network fetches them all. */
enum { PACKS_PER_SLICE = 64 };

/* Takes what the walk wants of a pack. Returns false when it needs no further one. */
static bool walk_pack(struct feed_walk *w, struct db_rows *packs, struct feed_row *out, size_t room,
                      size_t *count)
{
    struct feed_row rows[FEED_PACK_ROWS_MAX];
    size_t all = read_pack(packs, rows);
    for (size_t i = 0; i < all; i++) {
        if (rows[i].num <= w->after)
            continue;
        w->over = rows[i].num > w->through;
        if (w->over || *count == room)
            return false;
        w->after = rows[i].num;
        if (w->tenant == 0 || rows[i].tenant == w->tenant)
            out[(*count)++] = rows[i];
    }
    return true;
}

/* The next rows of a walk, `room` at most. Zero of them need not be the end: see w->over. */
static enum err walk_on(struct db *db, struct feed_walk *w, struct feed_row *out, size_t room,
                        size_t *ret_count)
{
    static const char SQL[] = SELECT_PACKS " WHERE num > $1 ORDER BY num LIMIT $2";
    static const char SQL_TENANT[] =
        SELECT_PACKS " WHERE num > $1 AND (tenant = $3 OR earlier IS NOT NULL)"
                     " ORDER BY num LIMIT $2";
    const struct db_value values[] = {DB_I(w->after), DB_I(PACKS_PER_SLICE), DB_I(w->tenant)};
    struct db_rows *packs = w->tenant != 0 ? db_query_values(db, SQL_TENANT, values, 3)
                                           : db_query_values(db, SQL, values, 2);
    size_t packs_read = 0;
    bool more = true;
    *ret_count = 0;
    for (; more && db_next(packs); packs_read++)
        more = walk_pack(w, packs, out, room, ret_count);
    w->over |= more && packs_read < PACKS_PER_SLICE;
    return db_rows_end(packs);
}

enum err feed_last(struct db *db, int64_t *ret)
{
    static const char SQL[] = "SELECT COALESCE(MAX(num), 0) FROM feed_packs";
    bool found;
    int64_t swept;
    enum err e = feed_mark_get(db, FEED_MARK_SWEPT, &found, &swept);
    if (e != ERR_OK)
        return e;
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    int64_t last = db_next(rows) ? db_count(rows, 0) : 0;
    *ret = MAX(last, swept); /* numbers of removed rows are not used again */
    return db_rows_end(rows);
}

enum err feed_list(struct db *db, int64_t after, int64_t limit, feed_each *each, void *ctx)
{
    struct feed_walk w = {.after = after, .through = INT64_MAX};
    struct feed_row rows[FEED_PACK_ROWS_MAX];
    bool more = true;
    while (more && limit > 0 && !w.over) {
        size_t count = 0;
        enum err e = walk_on(db, &w, rows, (size_t)MIN(limit, (int64_t)ARRAY_LEN(rows)), &count);
        if (e != ERR_OK)
            return e;
        limit -= (int64_t)count;
        for (size_t i = 0; i < count && more; i++)
            more = each(ctx, &rows[i]);
    }
    return ERR_OK;
}

/* --- of tenants with webhooks --- */

enum { TENANTS_TOGETHER = 32 }; /* as many parameters as the statement has */

static enum err keep_hooked(struct db *db, struct feed_row rows[static TENANTS_TOGETHER],
                            size_t *count)
{
    static const char SQL[] =
        "SELECT DISTINCT tenant FROM webhooks WHERE tenant IN ($1, $2, $3, $4, $5, $6, $7, $8, $9,"
        " $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26,"
        " $27, $28, $29, $30, $31, $32)";
    struct db_value tenants[TENANTS_TOGETHER];
    int64_t hooked[TENANTS_TOGETHER];
    size_t hooked_count = 0;
    size_t kept = 0;
    for (size_t i = 0; i < TENANTS_TOGETHER; i++)
        tenants[i] = DB_I(i < *count ? rows[i].tenant : -1);
    struct db_rows *found = db_query_values(db, SQL, tenants, ARRAY_LEN(tenants));
    while (hooked_count < TENANTS_TOGETHER && db_next(found))
        hooked[hooked_count++] = db_int(found, 0);
    for (size_t i = 0; i < *count; i++) {
        size_t at = 0;
        while (at < hooked_count && hooked[at] != rows[i].tenant)
            at++;
        if (at < hooked_count)
            rows[kept++] = rows[i];
    }
    *count = kept;
    return db_rows_end(found);
}

enum err feed_list_hooked(struct db *db, int64_t after, int64_t through, int64_t limit,
                          feed_each *each, void *ctx)
{
    struct feed_walk w = {.after = after, .through = through};
    bool more = true;
    while (more && !w.over) {
        struct feed_row rows[TENANTS_TOGETHER];
        size_t count = 0;
        enum err e = walk_on(db, &w, rows, ARRAY_LEN(rows), &count);
        if (e == ERR_OK && count > 0)
            e = keep_hooked(db, rows, &count);
        if (e != ERR_OK)
            return e;
        for (size_t i = 0; i < count && more; i++)
            more = limit-- > 0 && each(ctx, &rows[i]);
    }
    return ERR_OK;
}

/* --- with their owners --- */

enum { SOURCES_TOGETHER = 16 }; /* with two parameters of the statement each */

/* clang-format off */
#define PLACE(place, tenant, run) \
    "(" #place ", CAST($" #tenant " AS BIGINT), CAST($" #run " AS BIGINT))"
#define PLACES \
    PLACE(0, 1, 2) ", " PLACE(1, 3, 4) ", " PLACE(2, 5, 6) ", " PLACE(3, 7, 8) ", " \
    PLACE(4, 9, 10) ", " PLACE(5, 11, 12) ", " PLACE(6, 13, 14) ", " PLACE(7, 15, 16) ", " \
    PLACE(8, 17, 18) ", " PLACE(9, 19, 20) ", " PLACE(10, 21, 22) ", " PLACE(11, 23, 24) ", " \
    PLACE(12, 25, 26) ", " PLACE(13, 27, 28) ", " PLACE(14, 29, 30) ", " PLACE(15, 31, 32)
/* clang-format on */

/* Gives the rows with their owners to `each`, and counts them in *given. *more: it has not
 * stopped. */
static enum err each_source(struct db *db, const struct feed_row *rows, size_t count,
                            feed_each_source *each, void *ctx, int64_t *given, bool *more)
{
    static const char SQL[] =
        "WITH f (place, tenant, run) AS (VALUES " PLACES ") SELECT f.place, t.id,"
        " (SELECT m.published FROM moved_feeds m WHERE m.tenant = f.tenant), " OWNER_COLUMNS
        " FROM f CROSS JOIN tenants t" OWNER_JOINS
        " WHERE t.num = f.tenant ORDER BY f.place LIMIT 16";
    struct db_value values[2 * SOURCES_TOGETHER];
    for (size_t i = 0; i < SOURCES_TOGETHER; i++) {
        values[2 * i] = i < count ? DB_I(rows[i].tenant) : DB_N();
        values[2 * i + 1] = i < count ? DB_I(rows[i].owner) : DB_N();
    }
    struct db_rows *found = db_query_values(db, SQL, values, ARRAY_LEN(values));
    while (*more && db_next(found)) {
        int64_t place = db_int(found, 0);
        assert(place >= 0 && place < (int64_t)count);
        struct feed_source source = {.row = rows[place], .tenant = db_str(found, 1)};
        source.published = source.row.num <= db_int_or(found, 2, 0);
        source.has_owner = owner_read(found, 3, &source.owner);
        *more = each(ctx, &source);
        (*given)++;
    }
    return db_rows_end(found);
}

static enum err walk_sources(struct db *db, struct feed_walk *w, int64_t limit,
                             feed_each_source *each, void *ctx)
{
    int64_t given = 0;
    bool more = true;
    while (more && given < limit && !w->over) {
        struct feed_row rows[SOURCES_TOGETHER];
        size_t room = (size_t)MIN(limit - given, (int64_t)SOURCES_TOGETHER);
        size_t count = 0;
        enum err e = walk_on(db, w, rows, room, &count);
        if (e == ERR_OK && count > 0)
            e = each_source(db, rows, count, each, ctx, &given, &more);
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

enum err feed_sources(struct db *db, int64_t after, int64_t limit, feed_each_source *each,
                      void *ctx)
{
    struct feed_walk w = {.after = after, .through = INT64_MAX};
    return walk_sources(db, &w, limit, each, ctx);
}

enum err feed_of_tenant(struct db *db, int64_t tenant, int64_t after, int64_t through,
                        int64_t limit, feed_each_source *each, void *ctx)
{
    struct feed_walk w = {.after = after, .through = through, .tenant = tenant};
    return walk_sources(db, &w, limit, each, ctx);
}

enum err feed_count_events(struct db *db, int64_t after, int64_t *ret)
{
    struct feed_walk w = {.after = after, .through = INT64_MAX};
    int64_t events = 0;
    while (!w.over) {
        struct feed_row rows[FEED_PACK_ROWS_MAX];
        size_t count = 0;
        enum err e = walk_on(db, &w, rows, ARRAY_LEN(rows), &count);
        if (e != ERR_OK)
            return e;
        for (size_t i = 0; i < count; i++) {
            events += rows[i].last_seq - rows[i].first_seq + 1;
            if (events >= DB_COUNT_END)
                return ERR_DAMAGED;
        }
    }
    *ret = events;
    return ERR_OK;
}

enum err feed_move_of(struct db *db, int64_t tenant, struct feed_move *ret)
{
    static const char SQL[] = "SELECT shift, since, swept, fanned, fanned_seq FROM moved_feeds"
                              " WHERE tenant = $1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(tenant));
    *ret = (struct feed_move){0};
    if (db_next(rows))
        *ret = (struct feed_move){db_int(rows, 0), db_int(rows, 1), db_int(rows, 2),
                                  db_int(rows, 3), db_int(rows, 4)};
    return db_rows_end(rows);
}

/* --- marks --- */

enum err feed_mark_get(struct db *db, struct str name, bool *ret_found, int64_t *ret)
{
    static const char SQL[] = "SELECT through FROM feed_marks WHERE name = $1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_T(name));
    *ret_found = db_next(rows);
    *ret = *ret_found ? db_int(rows, 0) : 0;
    return db_rows_end(rows);
}

enum err feed_mark_set(struct db *db, struct str name, int64_t through)
{
    static const char SQL[] = "INSERT INTO feed_marks (name, through) VALUES ($1, $2)"
                              " ON CONFLICT (name) DO UPDATE SET through = excluded.through";
    return DB_EXEC(db, SQL, NULL, DB_T(name), DB_I(through));
}

enum err feed_mark_drop(struct db *db, struct str name)
{
    static const char SQL[] = "DELETE FROM feed_marks WHERE name = $1";
    return DB_EXEC(db, SQL, NULL, DB_T(name));
}

enum err feed_sweep(struct db *db, int64_t before_ms, int64_t through, int64_t limit,
                    int64_t *ret_removed)
{
    static const char SQL_LAST[] = "SELECT MAX(num) FROM (SELECT num, at FROM feed_packs"
                                   " WHERE num <= $1"
                                   " ORDER BY num LIMIT $2) AS oldest WHERE at < $3";
    static const char SQL[] = "DELETE FROM feed_packs WHERE num <= $1";
    *ret_removed = 0;
    struct db_rows *rows = DB_QUERY(db, SQL_LAST, DB_I(through), DB_I(limit), DB_I(before_ms));
    int64_t last = db_next(rows) ? db_int_or(rows, 0, -1) : -1;
    enum err e = db_rows_end(rows);
    if (e != ERR_OK || last < 0)
        return e;
    e = DB_EXEC(db, SQL, ret_removed, DB_I(last));
    return e == ERR_OK ? feed_mark_set(db, FEED_MARK_SWEPT, last) : e;
}
