/* Rows of the feed in their packs, compared with a list of the rows. */
#include "store/run_support.h"

#include "store/outbox/feed.h"

enum { TENANTS = 5, HOOKED_TENANT = 3, ROWS_MAX = 2000, OWNERS_FROM = 1 << 30 };

static struct feed_row model[ROWS_MAX];
static size_t model_count;

static bool is_row(const struct feed_row *a, const struct feed_row *b)
{
    return a->num == b->num && a->tenant == b->tenant && a->owner == b->owner &&
           a->first_seq == b->first_seq && a->last_seq == b->last_seq && a->at == b->at;
}

/* What a commit adds: often one row, now and then more than fit in a pack. */
static void add(struct db *db, struct rng *r)
{
    struct feed_row rows[3 * FEED_PACK_ROWS_MAX];
    size_t count = 1 + rng_below(r, rng_below(r, 3) == 0 ? ARRAY_LEN(rows) : 4);
    count = MIN(count, ROWS_MAX - model_count);
    int64_t at = 1000 + (int64_t)model_count;
    for (size_t i = 0; i < count; i++) {
        int64_t first = 1 + (int64_t)rng_below(r, 1000);
        rows[i] = (struct feed_row){.num = (int64_t)model_count + 1,
                                    .tenant = 1 + (int64_t)rng_below(r, TENANTS),
                                    .owner = OWNERS_FROM + (int64_t)rng_below(r, 1u << 30),
                                    .first_seq = first,
                                    .last_seq = first + (int64_t)rng_below(r, 5),
                                    .at = at};
        model[model_count++] = rows[i];
    }
    for (size_t done = 0; done < count; done += FEED_PACK_ROWS_MAX)
        assert_ok(feed_insert(db, rows + done, MIN(count - done, (size_t)FEED_PACK_ROWS_MAX),
                              done == 0 ? STR("[[1,2,3,4]]") : STR_NONE));
}

static struct db *open_with_rows(const struct folder *folder, struct rng *r)
{
    struct db *db = open_writer(path_in(folder, "x.db").text);
    model_count = 0;
    assert_ok(db_begin(db));
    while (model_count < ROWS_MAX)
        add(db, r);
    return db;
}

/* --- what a reader is given --- */

struct expected {
    int64_t after, through, tenant;
    size_t at;    /* in the model */
    size_t given; /* so far */
    size_t stop;  /* after so many */
};

static bool is_expected(const struct expected *x, const struct feed_row *row)
{
    return row->num > x->after && row->num <= x->through &&
           (x->tenant == 0 || row->tenant == x->tenant);
}

static bool take(void *ctx, const struct feed_row *row)
{
    struct expected *x = ctx;
    while (x->at < model_count && !is_expected(x, &model[x->at]))
        x->at++;
    assert_true(x->at < model_count);
    assert_true(is_row(row, &model[x->at]));
    x->at++;
    return ++x->given < x->stop;
}

static bool take_source(void *ctx, const struct feed_source *source)
{
    char id[16];
    assert_false(source->has_owner);
    (void)snprintf(id, sizeof(id), "t%lld", (long long)source->row.tenant);
    assert_true(str_is(source->tenant, id));
    return take(ctx, &source->row);
}

static size_t count_expected(struct expected x, size_t limit)
{
    size_t count = 0;
    for (size_t i = 0; i < model_count; i++)
        count += is_expected(&x, &model[i]);
    return MIN(MIN(count, x.stop), limit);
}

static struct expected random_place(struct rng *r)
{
    int64_t after = (int64_t)rng_below(r, ROWS_MAX + 2);
    return (struct expected){.after = after,
                             .through = INT64_MAX,
                             .stop = rng_below(r, 3) == 0 ? 1 + rng_below(r, 100) : ROWS_MAX + 1};
}

static void readers_get_each_row_under_its_number(void **state)
{
    struct rng r = {5};
    struct db *db = open_with_rows(*state, &r);
    for (int i = 0; i < 200; i++) {
        size_t limit = 1 + rng_below(&r, 300);
        struct expected x = random_place(&r);
        size_t wanted = count_expected(x, limit);
        assert_ok(feed_list(db, x.after, (int64_t)limit, take, &x));
        assert_int_equal(x.given, wanted);
    }
    int64_t last = 0;
    assert_ok(feed_last(db, &last));
    assert_int_equal(last, ROWS_MAX);
    db_close(db);
}

#define PUT_TENANT                                                                                \
    "INSERT INTO tenants (num, id, at_limit, weight, gate, active_runs, queued_runs, created_at," \
    " updated_at) VALUES ($1, $2, 'queue', 1, '', 0, 0, 1, 1)"

static void put_tenants(struct db *db)
{
    static const char SQL[] = PUT_TENANT;
    for (int64_t t = 1; t <= TENANTS; t++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "t%lld", (long long)t);
        assert_ok(DB_EXEC(db, SQL, NULL, DB_I(t), DB_T(str_of(id))));
    }
}

static void readers_of_a_tenant_get_its_rows_only(void **state)
{
    struct rng r = {6};
    struct db *db = open_with_rows(*state, &r);
    put_tenants(db);
    for (int i = 0; i < 100; i++) {
        size_t limit = 1 + rng_below(&r, 100);
        struct expected x = random_place(&r);
        size_t wanted = count_expected(x, limit);
        assert_ok(feed_sources(db, x.after, (int64_t)limit, take_source, &x));
        assert_int_equal(x.given, wanted);
        x = random_place(&r);
        x.tenant = 1 + (int64_t)rng_below(&r, TENANTS);
        x.through = x.after + (int64_t)rng_below(&r, ROWS_MAX);
        wanted = count_expected(x, limit);
        assert_ok(
            feed_of_tenant(db, x.tenant, x.after, x.through, (int64_t)limit, take_source, &x));
        assert_int_equal(x.given, wanted);
    }
    db_close(db);
}

/* A row of nobody's has the last number after a tenant has moved away. */
static void a_row_of_no_tenant_takes_no_place(void **state)
{
    struct db *db = open_writer(path_in(*state, "x.db").text);
    struct feed_row rows[] = {{1, 1, 5, 1, 1, 9}, {2, 99, 0, 1, 0, 9}, {3, 1, 6, 1, 1, 9}};
    memcpy(model, rows, sizeof(rows));
    model_count = ARRAY_LEN(rows);
    assert_ok(db_begin(db));
    put_tenants(db);
    assert_ok(feed_insert(db, rows, ARRAY_LEN(rows), STR_NONE));
    struct expected x = {.through = INT64_MAX, .tenant = 1, .stop = 9};
    assert_ok(feed_sources(db, 0, 2, take_source, &x));
    assert_int_equal(x.given, 2);
    db_close(db);
}

static void fan_out_gets_rows_of_tenants_with_webhooks(void **state)
{
    static const char SQL[] =
        "INSERT INTO webhooks (num, id, tenant, url, events, secret, feed_from, created_by,"
        " created_at, updated_at) VALUES (1, $1, $2, 'http://x', '[]', $3, 0, 'me', 1, 1)";
    struct rng r = {7};
    struct db *db = open_with_rows(*state, &r);
    const struct uuid id = {{1}};
    assert_ok(DB_EXEC(db, SQL, NULL, DB_U(id), DB_I(HOOKED_TENANT), DB_B("0123", 4)));
    for (int i = 0; i < 100; i++) {
        size_t limit = 1 + rng_below(&r, 100);
        struct expected x = random_place(&r);
        x.tenant = HOOKED_TENANT;
        x.through = x.after + (int64_t)rng_below(&r, ROWS_MAX);
        size_t wanted = count_expected(x, limit);
        assert_ok(feed_list_hooked(db, x.after, x.through, (int64_t)limit, take, &x));
        assert_int_equal(x.given, wanted);
    }
    db_close(db);
}

static void events_above_a_mark_are_counted_inside_a_pack_too(void **state)
{
    struct rng r = {8};
    struct db *db = open_with_rows(*state, &r);
    for (int64_t after = 0; after <= ROWS_MAX; after += 97) {
        int64_t events = 0;
        int64_t counted = -1;
        for (size_t i = (size_t)after; i < model_count; i++)
            events += model[i].last_seq - model[i].first_seq + 1;
        assert_ok(feed_count_events(db, after, &counted));
        assert_int_equal(counted, events);
    }
    db_close(db);
}

static void the_view_shows_it_row_by_row(void **state)
{
    static const char SQL[] = "SELECT num, tenant, run, first_seq, last_seq, at FROM feed"
                              " WHERE num > $1 AND pack > $1 ORDER BY num";
    struct rng r = {9};
    struct db *db = open_with_rows(*state, &r);
    size_t at = 100;
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I((int64_t)at));
    for (; db_next(rows); at++) {
        const struct feed_row row = {db_int(rows, 0), db_int(rows, 1), db_int(rows, 2),
                                     db_int(rows, 3), db_int(rows, 4), db_int(rows, 5)};
        assert_true(is_row(&row, &model[at]));
    }
    assert_ok(db_rows_end(rows));
    assert_int_equal(at, model_count);
    db_close(db);
}

static void owners_above_the_timers_mark_are_ahead(void **state)
{
    static const char MARK[] = "INSERT INTO indexed (name, through) VALUES ('timers', $1)"
                               " ON CONFLICT (name) DO UPDATE SET through = excluded.through";
    struct rng r = {10};
    struct db *db = open_with_rows(*state, &r);
    for (int64_t mark = 0; mark <= ROWS_MAX; mark += 211) {
        int64_t owners = 0;
        for (size_t i = (size_t)mark; i < model_count; i++)
            owners += model[i].owner;
        assert_ok(DB_EXEC(db, MARK, NULL, DB_I(mark)));
        assert_int_equal(number_of(db, "SELECT COALESCE(sum(run), 0) FROM owners_ahead"), owners);
    }
    db_close(db);
}

/* --- packs --- */

static void a_pack_is_swept_when_all_of_it_may_be(void **state)
{
    struct db *db = open_writer(path_in(*state, "x.db").text);
    const struct feed_row rows[] = {{1, 1, 5, 1, 1, 9}, {2, 1, 6, 1, 1, 9}, {3, 1, 7, 1, 1, 9}};
    int64_t removed = -1;
    int64_t last = 0;
    assert_ok(db_begin(db));
    assert_ok(feed_insert(db, rows, ARRAY_LEN(rows), STR_NONE));
    assert_ok(feed_sweep(db, 10, 2, 100, &removed));
    assert_int_equal(removed, 0);
    assert_ok(feed_sweep(db, 10, 3, 100, &removed));
    assert_int_equal(removed, 1);
    assert_ok(feed_last(db, &last));
    assert_int_equal(last, 3);
    db_close(db);
}

static void a_damaged_pack_is_an_error(void **state)
{
    static const char *const DAMAGES[] = {
        "UPDATE feed_packs SET earlier = ''",
        "UPDATE feed_packs SET earlier = '[]'",
        "UPDATE feed_packs SET earlier = '[[1,2,3]]'",
        "UPDATE feed_packs SET earlier = '[[1,2,3,4]'",
        "UPDATE feed_packs SET earlier = '[[1,2,3,4],]'",
        "UPDATE feed_packs SET earlier = '[[1,2,3,4]]]'",
        "UPDATE feed_packs SET earlier = '[[1,2,3,x]]'",
        "UPDATE feed_packs SET earlier = '[[1,2,3,]]'",
        "UPDATE feed_packs SET earlier = '[[1,--2,3,4]]'",
        "UPDATE feed_packs SET earlier = '[[1,12345678901234567890,3,4]]'",
        "UPDATE feed_packs SET earlier = '[[1,1152921504606846976,3,4]]'",
        "UPDATE feed_packs SET earlier = '[[1,-9223372036854775808,3,4]]'",
        "UPDATE feed_packs SET earlier = '[[-1,2,3,4]]'",
        "UPDATE feed_packs SET earlier = '[[1,-7,3,4]]'",
        "UPDATE feed_packs SET earlier = '[[1,2,-3,4]]'",
        "UPDATE feed_packs SET earlier = '[[1,2,3,-4]]'",
        "UPDATE feed_packs SET earlier = '[[1,2,5,3]]'",
        "UPDATE feed_packs SET earlier = '[[1,2,3,4]]', run = 9223372036854775807",
        "UPDATE feed_packs SET run = -9223372036854775807 - 1",
        "UPDATE feed_packs SET run = 6, tenant = -1",
        "UPDATE feed_packs SET tenant = 1, first_seq = -9223372036854775807 - 1",
        "UPDATE feed_packs SET first_seq = 5, last_seq = 3",
    };
    struct db *db = open_writer(path_in(*state, "x.db").text);
    const struct feed_row rows[] = {{1, 1, 5, 1, 1, 9}, {2, 1, 6, 1, 1, 9}};
    assert_ok(db_begin(db));
    assert_ok(feed_insert(db, rows, ARRAY_LEN(rows), STR_NONE));
    for (size_t i = 0; i < ARRAY_LEN(DAMAGES); i++) {
        int64_t events;
        assert_ok(db_exec_values(db, DAMAGES[i], NULL, 0, NULL));
        assert_int_equal(feed_count_events(db, 0, &events), ERR_DAMAGED);
    }
    db_close(db);
}

/* Each of them might be, but not all. */
static void rows_with_more_events_than_any_store_has_are_an_error(void **state)
{
    struct db *db = open_writer(path_in(*state, "x.db").text);
    struct feed_row rows[20];
    int64_t events;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        rows[i] = (struct feed_row){(int64_t)i + 1, 1, 5, 1, DB_COUNT_END - 1, 9};
    assert_ok(db_begin(db));
    assert_ok(feed_insert(db, rows, ARRAY_LEN(rows), STR_NONE));
    assert_int_equal(feed_count_events(db, 0, &events), ERR_DAMAGED);
    db_close(db);
}

/* The places that a statement has and a slice does not need must not be taken for one. */
static void a_tenant_with_a_damaged_number_gets_no_rows(void **state)
{
    static const char SQL[] = "UPDATE tenants SET num = -1 WHERE num = 2";
    struct db *db = open_writer(path_in(*state, "x.db").text);
    const struct feed_row row = {1, 1, 5, 1, 1, 9};
    model[0] = row;
    model_count = 1;
    assert_ok(db_begin(db));
    put_tenants(db);
    assert_ok(feed_insert(db, &row, 1, STR_NONE));
    assert_ok(db_exec_values(db, SQL, NULL, 0, NULL));
    struct expected x = {.through = INT64_MAX, .stop = 9};
    assert_ok(feed_sources(db, 0, 9, take_source, &x));
    assert_int_equal(x.given, 1);
    db_close(db);
}

/* One more than a pack may have, as no version of pawl has written it. */
static void a_pack_that_is_too_long_is_an_error(void **state)
{
    static const char SQL[] = "UPDATE feed_packs SET earlier = $1";
    struct db *db = open_writer(path_in(*state, "x.db").text);
    const struct feed_row row = {1000, 1, 5, 1, 1, 9};
    char text[KIB] = "[";
    int64_t events = 0;
    assert_ok(db_begin(db));
    assert_ok(feed_insert(db, &row, 1, STR_NONE));
    for (size_t i = 1; i <= FEED_PACK_ROWS_MAX; i++) {
        char *at = text + strlen(text);
        (void)snprintf(at, sizeof(text) - strlen(text), "%s[1,0,1,1]]", i > 1 ? "," : "");
        assert_ok(DB_EXEC(db, SQL, NULL, DB_T(str_of(text))));
        assert_int_equal(feed_count_events(db, 0, &events),
                         i < FEED_PACK_ROWS_MAX ? ERR_OK : ERR_DAMAGED);
        text[strlen(text) - 1] = '\0';
    }
    assert_int_equal(events, FEED_PACK_ROWS_MAX);
    db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(readers_get_each_row_under_its_number),
        folder_test(readers_of_a_tenant_get_its_rows_only),
        folder_test(a_row_of_no_tenant_takes_no_place),
        folder_test(fan_out_gets_rows_of_tenants_with_webhooks),
        folder_test(events_above_a_mark_are_counted_inside_a_pack_too),
        folder_test(the_view_shows_it_row_by_row),
        folder_test(owners_above_the_timers_mark_are_ahead),
        folder_test(a_pack_is_swept_when_all_of_it_may_be),
        folder_test(a_damaged_pack_is_an_error),
        folder_test(rows_with_more_events_than_any_store_has_are_an_error),
        folder_test(a_tenant_with_a_damaged_number_gets_no_rows),
        folder_test(a_pack_that_is_too_long_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
