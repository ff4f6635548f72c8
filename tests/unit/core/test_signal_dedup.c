/* Signals that come again: which are known, which are forgotten, and what that costs. */
#include "store/folder.h"

#include "base/limits.h"
#include "core/txn/signal_dedup.h"
#include "core/txn/window_stats.h"
#include "domain/idempotency.h"
#include "store/entity/dedup.h"

#include <inttypes.h>

enum { OWNER = 77, TYPE = 3 };

struct fixture {
    struct path file;
    struct db *db;
    struct env env;
    int64_t now_ms;
    struct tx tx;
    struct signal_dedup_rules rules;
    int64_t seq;
};

static int64_t house_now_us(void *ctx)
{
    return ((struct fixture *)ctx)->now_ms * 1000;
}

static int64_t house_mono_ns(void *ctx)
{
    return ((struct fixture *)ctx)->now_ms * 1000000;
}

static void house_random(void *ctx, void *out, size_t len)
{
    (void)ctx;
    memset(out, 0, len);
}

static struct fixture *fixture_open(struct folder *folder)
{
    struct fixture *h = calloc(1, sizeof(*h));
    assert_non_null(h);
    h->file = path_in(folder, "p.db");
    h->env = (struct env){house_now_us, house_mono_ns, house_random, h};
    h->now_ms = INT64_C(1700000000000);
    h->db = open_with(h->file.text, DB_WRITER, &h->env, 0);
    h->rules = (struct signal_dedup_rules){.window_ms = 1000, .max_keys = 3, .type = TYPE};
    assert_ok(tx_init(&h->tx, h->db, &h->env));
    return h;
}

static void fixture_close(struct fixture *h)
{
    tx_release(&h->tx);
    db_close(h->db);
    free(h);
}

static void turn_begin(struct fixture *h)
{
    tx_start(&h->tx, env_now_ms(h->tx.env));
    assert_ok(db_begin(h->db));
}

static void turn_end(struct fixture *h)
{
    assert_ok(tx_commit(&h->tx));
}

static struct signal_dedup_key key_of(int64_t owner, const char *key, const char *request)
{
    return (struct signal_dedup_key){
        .owner = owner, .key = str_of(key), .request = sha256_of(str_of(request))};
}

/* Looks, and goes in if it is new. The number of the signal is in *ret_seq. */
static enum signal_dedup_verdict deliver(struct fixture *h, const char *key, const char *request,
                                         int64_t *ret_seq)
{
    struct signal_dedup_key k = key_of(OWNER, key, request);
    enum signal_dedup_verdict verdict = SIGNAL_REUSED;
    int64_t evicted = 0;
    turn_begin(h);
    int64_t before = db_changes(h->db);
    assert_ok(signal_dedup_check(&h->tx, &k, &h->rules, &verdict, ret_seq));
    assert_int_equal(db_changes(h->db), before);
    if (verdict == SIGNAL_NEW) {
        *ret_seq = ++h->seq;
        assert_ok(signal_dedup_record(&h->tx, &k, &h->rules, *ret_seq, &evicted));
        assert_true(evicted < *ret_seq);
    }
    turn_end(h);
    return verdict;
}

static void assert_new(struct fixture *h, const char *key)
{
    int64_t seq = 0;
    if (deliver(h, key, "r", &seq) != SIGNAL_NEW)
        fail_msg("%s is known", key);
}

static void assert_known(struct fixture *h, const char *key, int64_t seq)
{
    int64_t found = 0;
    if (deliver(h, key, "r", &found) != SIGNAL_DUPLICATE)
        fail_msg("%s is not known", key);
    assert_int_equal(found, seq);
}

static struct signal_dedup_view view_of(struct fixture *h)
{
    struct signal_dedup_view view;
    assert_ok(signal_dedup_show(h->db, OWNER, &view));
    return view;
}

static struct dedup_counts *counts_of(struct fixture *h)
{
    struct dedup_counts *counts = window_stats_of(h->tx.window_stats, TYPE);
    assert_non_null(counts);
    return counts;
}

/* --- what is known --- */

static void a_key_brings_back_its_first_number(void **state)
{
    struct fixture *h = fixture_open(*state);
    assert_int_equal(view_of(h).keys, 0);
    assert_int_equal(view_of(h).oldest_at, -1);
    assert_new(h, "a");
    assert_new(h, "b");
    assert_known(h, "a", 1);
    assert_known(h, "b", 2);
    assert_known(h, "a", 1);
    assert_int_equal(view_of(h).keys, 2);
    assert_int_equal(view_of(h).oldest_at, h->now_ms);
    assert_int_equal(number_of(h->db, "SELECT count(*) FROM dedup"), 2);
    fixture_close(h);
}

static void a_key_with_another_signal_is_refused(void **state)
{
    struct fixture *h = fixture_open(*state);
    int64_t seq = 0;
    assert_new(h, "a");
    assert_int_equal(deliver(h, "a", "another", &seq), SIGNAL_REUSED);
    assert_known(h, "a", 1);
    assert_int_equal(view_of(h).keys, 1);
    assert_int_equal(dedup_duplicates(counts_of(h)), 1); /* what is refused is no duplicate */
    fixture_close(h);
}

static void owners_have_keys_of_their_own(void **state)
{
    struct fixture *h = fixture_open(*state);
    struct signal_dedup_key other = key_of(OWNER + 1, "a", "r");
    enum signal_dedup_verdict verdict = SIGNAL_REUSED;
    int64_t seq = 0;
    assert_new(h, "a");
    turn_begin(h);
    assert_ok(signal_dedup_check(&h->tx, &other, &h->rules, &verdict, &seq));
    assert_int_equal(verdict, SIGNAL_NEW);
    turn_end(h);
    fixture_close(h);
}

/* Rows of the version before this one have no fingerprint. */
static void a_key_without_a_fingerprint_fits_any_signal(void **state)
{
    struct fixture *h = fixture_open(*state);
    assert_new(h, "a");
    turn_begin(h);
    run_sql(h->db, "UPDATE dedup SET request = x''");
    turn_end(h);
    int64_t seq = 0;
    assert_int_equal(deliver(h, "a", "whatever", &seq), SIGNAL_DUPLICATE);
    assert_int_equal(seq, 1);
    fixture_close(h);
}

static void a_shared_hash_does_not_make_a_key_known(void **state)
{
    struct fixture *h = fixture_open(*state);
    assert_new(h, "a");
    turn_begin(h);
    struct dedup_key twin = {.num = 2,
                             .key_hash = idem_key_hash(STR("b")),
                             .key = STR("not b"),
                             .request = STR(""),
                             .seq = 2,
                             .at = h->now_ms};
    assert_ok(dedup_insert(h->db, OWNER, &twin));
    run_sql(h->db, "UPDATE dedup_windows SET last = 2");
    turn_end(h);
    h->seq = 2;
    assert_new(h, "b");
    assert_known(h, "b", 3);
    assert_int_equal(dedup_late(counts_of(h)), 0);
    fixture_close(h);
}

static void readers_find_the_number_of_a_key(void **state)
{
    struct fixture *h = fixture_open(*state);
    bool found = true;
    int64_t seq = 0;
    assert_new(h, "a");
    assert_new(h, "b");
    assert_ok(signal_dedup_find(h->db, OWNER, STR("b"), &found, &seq));
    assert_true(found);
    assert_int_equal(seq, 2);
    assert_ok(signal_dedup_find(h->db, OWNER, STR("c"), &found, &seq));
    assert_false(found);
    assert_new(h, "d");
    assert_new(h, "e"); /* pushes out a, which keeps its text for a while */
    assert_ok(signal_dedup_find(h->db, OWNER, STR("a"), &found, &seq));
    assert_false(found);
    fixture_close(h);
}

/* --- what leaves --- */

static void keys_leave_by_count_the_oldest_first(void **state)
{
    struct fixture *h = fixture_open(*state);
    static const char *const KEYS[] = {"a", "b", "c", "d", "e"};
    for (size_t i = 0; i < ARRAY_LEN(KEYS); i++)
        assert_new(h, KEYS[i]);
    assert_int_equal(view_of(h).keys, 3);
    assert_int_equal(view_of(h).first, 3);
    for (int64_t i = 2; i < 5; i++)
        assert_known(h, KEYS[i], i + 1);
    assert_new(h, "a"); /* and pushes out c, not d or e */
    assert_new(h, "c");
    assert_known(h, "e", 5);
    assert_int_equal(counts_of(h)->evicted_by_count, 4);
    assert_int_equal(counts_of(h)->evicted_by_age, 0);
    fixture_close(h);
}

static void keys_leave_by_age_when_the_next_one_comes(void **state)
{
    struct fixture *h = fixture_open(*state);
    assert_new(h, "a");
    h->now_ms += 600;
    assert_new(h, "b");
    h->now_ms += 400;
    assert_known(h, "a", 1); /* as old as it may be */
    h->now_ms += 1;
    assert_int_equal(view_of(h).keys, 2);
    assert_known(h, "b", 2);
    assert_new(h, "a"); /* again: it is forgotten although it had not left yet */
    assert_int_equal(view_of(h).keys, 2);
    assert_int_equal(view_of(h).first, 2);
    assert_known(h, "a", 3);
    assert_int_equal(counts_of(h)->evicted_by_age, 1);
    fixture_close(h);
}

static void a_new_signal_learns_up_to_which_signal_keys_are_gone(void **state)
{
    struct fixture *h = fixture_open(*state);
    int64_t evicted = -1;
    h->seq = 100;
    for (int i = 0; i < 3; i++) {
        char name[8];
        (void)snprintf(name, sizeof(name), "%d", i);
        assert_new(h, name);
        h->seq += 10; /* signals without keys */
    }
    struct signal_dedup_key k = key_of(OWNER, "next", "r");
    enum signal_dedup_verdict verdict = SIGNAL_REUSED;
    turn_begin(h);
    assert_ok(signal_dedup_check(&h->tx, &k, &h->rules, &verdict, &evicted));
    assert_ok(signal_dedup_record(&h->tx, &k, &h->rules, 200, &evicted));
    turn_end(h);
    assert_int_equal(evicted, 101);
    h->now_ms += 5000;
    k = key_of(OWNER, "later", "r");
    turn_begin(h);
    assert_ok(signal_dedup_check(&h->tx, &k, &h->rules, &verdict, &evicted));
    assert_ok(signal_dedup_record(&h->tx, &k, &h->rules, 201, &evicted));
    turn_end(h);
    assert_int_equal(evicted, 200);
    assert_int_equal(view_of(h).keys, 1);
    fixture_close(h);
}

static void a_window_of_one_key_knows_the_newest(void **state)
{
    struct fixture *h = fixture_open(*state);
    h->rules.max_keys = 1;
    for (int i = 0; i < 200; i++) {
        char name[8];
        (void)snprintf(name, sizeof(name), "%d", i);
        assert_new(h, name);
        assert_known(h, name, i + 1);
    }
    assert_int_equal(view_of(h).keys, 1);
    assert_true(number_of(h->db, "SELECT count(*) FROM dedup") <= 1 + 1 + 2 * 64);
    fixture_close(h);
}

/* --- a clock that jumps --- */

static void a_clock_that_goes_back_forgets_nothing(void **state)
{
    struct fixture *h = fixture_open(*state);
    assert_new(h, "a");
    h->now_ms -= 3600 * 1000;
    assert_known(h, "a", 1);
    assert_new(h, "b");
    h->now_ms += 3600 * 1000; /* b is old now, a behind it is not */
    assert_known(h, "a", 1);
    assert_new(h, "b");
    assert_known(h, "b", 3);
    assert_new(h, "c");
    assert_new(h, "d");
    assert_int_equal(view_of(h).keys, 3);
    fixture_close(h);
}

static void a_clock_that_was_far_ahead_still_leaves_room(void **state)
{
    struct fixture *h = fixture_open(*state);
    h->now_ms += INT64_C(10) * 365 * 86400 * 1000;
    assert_new(h, "future");
    h->now_ms -= INT64_C(10) * 365 * 86400 * 1000;
    static const char *const KEYS[] = {"a", "b", "c"};
    for (size_t i = 0; i < ARRAY_LEN(KEYS); i++)
        assert_new(h, KEYS[i]);
    assert_int_equal(view_of(h).keys, 3);
    assert_new(h, "future");
    fixture_close(h);
}

/* --- how late duplicates come --- */

static void duplicates_are_counted_by_their_age(void **state)
{
    struct fixture *h = fixture_open(*state);
    h->rules.window_ms = INT64_C(3) * 86400 * 1000;
    assert_new(h, "a");
    assert_known(h, "a", 1);
    h->now_ms += 1001;
    assert_known(h, "a", 1);
    h->now_ms += 3600 * 1000;
    assert_known(h, "a", 1);
    h->now_ms += INT64_C(4) * 86400 * 1000;
    assert_new(h, "a");
    const struct dedup_counts *c = counts_of(h);
    assert_int_equal(c->duplicates[DEDUP_1_S], 1);
    assert_int_equal(c->duplicates[DEDUP_10_S], 1);
    assert_int_equal(c->duplicates[DEDUP_6_H], 1);
    assert_int_equal(c->late[DEDUP_7_D], 1);
    assert_int_equal(c->keyed, 2);
    fixture_close(h);
}

static void keys_that_left_are_missed_for_a_further_window(void **state)
{
    struct fixture *h = fixture_open(*state);
    h->rules.max_keys = 100;
    for (int i = 0; i < 100; i++) {
        char name[8];
        (void)snprintf(name, sizeof(name), "%d", i);
        assert_new(h, name);
    }
    h->now_ms += 1500;
    assert_new(h, "x"); /* all others lose their text at once */
    assert_int_equal(number_of(h->db, "SELECT count(*) FROM dedup WHERE key IS NULL"), 100);
    assert_int_equal(number_of(h->db, "SELECT count(*) FROM dedup WHERE request IS NULL"), 100);
    assert_new(h, "17");
    assert_int_equal(dedup_late(counts_of(h)), 1);
    assert_int_equal(counts_of(h)->late[DEDUP_10_S], 1);
    assert_int_equal(counts_of(h)->evicted_by_age, 100);
    assert_new(h, "other"); /* was never here */
    assert_int_equal(dedup_late(counts_of(h)), 1);
    fixture_close(h);
}

static void counts_wait_for_the_sweep(void **state)
{
    struct fixture *h = fixture_open(*state);
    assert_new(h, "a");
    assert_known(h, "a", 1);
    assert_int_equal(number_of(h->db, "SELECT count(*) FROM dedup_totals"), 0);
    turn_begin(h);
    assert_ok(window_stats_flush(h->tx.window_stats, h->db, h->now_ms));
    turn_end(h);
    struct dedup_counts c;
    int64_t since = 0;
    assert_ok(dedup_counts_find(h->db, TYPE, &c, &since));
    assert_int_equal(since, h->now_ms);
    assert_int_equal(c.keyed, 1);
    assert_int_equal(dedup_duplicates(&c), 1);
    assert_int_equal(counts_of(h)->keyed, 0);
    int64_t before = db_changes(h->db);
    window_stats_forget(h->tx.window_stats);
    turn_begin(h);
    assert_ok(window_stats_flush(h->tx.window_stats, h->db, h->now_ms));
    turn_end(h);
    assert_int_equal(db_changes(h->db), before);
    fixture_close(h);
}

static void a_rollback_takes_its_counts_back(void **state)
{
    struct fixture *h = fixture_open(*state);
    struct signal_dedup_key k = key_of(OWNER, "a", "r");
    enum signal_dedup_verdict verdict = SIGNAL_REUSED;
    int64_t seq = 0;
    turn_begin(h);
    assert_ok(signal_dedup_check(&h->tx, &k, &h->rules, &verdict, &seq));
    assert_ok(signal_dedup_record(&h->tx, &k, &h->rules, 1, &seq));
    db_rollback(h->db);
    tx_rolled_back(&h->tx);
    assert_int_equal(counts_of(h)->keyed, 0);
    assert_new(h, "a");
    assert_int_equal(counts_of(h)->keyed, 1);
    fixture_close(h);
}

static void more_types_than_fit_are_not_counted(void **state)
{
    (void)state;
    struct window_stats *stats = window_stats_new();
    assert_non_null(stats);
    assert_null(window_stats_of(stats, 0));
    for (int64_t type = 1; type <= DEDUP_STATS_PENDING_MAX; type++)
        assert_non_null(window_stats_of(stats, type));
    assert_null(window_stats_of(stats, DEDUP_STATS_PENDING_MAX + 1));
    assert_non_null(window_stats_of(stats, 1));
    window_stats_free(stats);
}

/* --- what it costs --- */

static void a_steady_stream_pays_a_few_rows_per_key(void **state)
{
    struct fixture *h = fixture_open(*state);
    enum { KEYS = 5000 };
    h->rules.max_keys = 500;
    int64_t most = 0;
    int64_t before = db_changes(h->db);
    for (int i = 0; i < KEYS; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "%d", i);
        int64_t changes = db_changes(h->db);
        assert_new(h, name);
        most = MAX(most, db_changes(h->db) - changes);
    }
    /* The row, its window, and in the long run the loss of its text and of itself. */
    assert_true(db_changes(h->db) - before <= 4 * KEYS);
    assert_true(most <= 2 + 2 * 64);
    assert_true(number_of(h->db, "SELECT count(*) FROM dedup") <= 2 * 500 + 2 * 64);
    assert_true(number_of(h->db, "SELECT count(*) FROM dedup WHERE key IS NOT NULL") <= 500 + 64);
    fixture_close(h);
}

static void one_arrival_after_a_quiet_month_does_bounded_work(void **state)
{
    struct fixture *h = fixture_open(*state);
    enum { KEYS = 3 * DEDUP_EVICTED_PER_KEY_MAX };
    h->rules.max_keys = 100000;
    turn_begin(h);
    struct dedup_window w = {.first = 1, .last = KEYS, .emptied = 1, .forgotten = 1};
    for (int64_t num = 1; num <= KEYS; num++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "%" PRId64, num);
        struct dedup_key row = {.num = num,
                                .key_hash = idem_key_hash(str_of(name)),
                                .key = str_of(name),
                                .request = STR(""),
                                .seq = num,
                                .at = h->now_ms};
        assert_ok(dedup_insert(h->db, OWNER, &row));
    }
    assert_ok(dedup_windows_put(h->db, OWNER, &w));
    turn_end(h);
    h->seq = KEYS;
    h->now_ms += INT64_C(30) * 86400 * 1000;
    for (int i = 0; i < 4; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "new-%d", i);
        int64_t changes = db_changes(h->db);
        assert_new(h, name);
        assert_true(db_changes(h->db) - changes <= 2 + 2 * DEDUP_EVICTED_PER_KEY_MAX);
        assert_int_equal(view_of(h).keys,
                         MAX(KEYS - (i + 1) * DEDUP_EVICTED_PER_KEY_MAX, 0) + i + 1);
        assert_known(h, name, KEYS + i + 1);
    }
    assert_int_equal(view_of(h).keys, 4);
    assert_int_equal(counts_of(h)->evicted_by_age, KEYS);
    assert_true(number_of(h->db, "SELECT count(*) FROM dedup") <= 4 + 64);
    fixture_close(h);
}

static void lower_limits_hold_at_once_and_are_caught_up_with(void **state)
{
    struct fixture *h = fixture_open(*state);
    h->rules.max_keys = 200;
    for (int i = 0; i < 200; i++) {
        char name[8];
        (void)snprintf(name, sizeof(name), "%d", i);
        assert_new(h, name);
    }
    h->rules.max_keys = 2;
    assert_known(h, "199", 200);
    assert_known(h, "198", 199);
    assert_new(h, "197");
    assert_int_equal(view_of(h).keys, 2);
    assert_new(h, "y");
    assert_true(number_of(h->db, "SELECT count(*) FROM dedup") <= 2 + 2 + 2 * 64);
    fixture_close(h);
}

static void an_owner_that_is_gone_leaves_nothing(void **state)
{
    struct fixture *h = fixture_open(*state);
    int64_t removed = 0;
    bool gone = false;
    assert_new(h, "a");
    assert_new(h, "b");
    turn_begin(h);
    assert_ok(signal_dedup_forget(h->db, OWNER, 2, &removed, &gone));
    assert_false(gone);
    assert_ok(signal_dedup_forget(h->db, OWNER, 2, &removed, &gone));
    assert_true(gone);
    turn_end(h);
    assert_int_equal(number_of(h->db, "SELECT count(*) FROM dedup"), 0);
    assert_int_equal(number_of(h->db, "SELECT count(*) FROM dedup_windows"), 0);
    fixture_close(h);
}

/* --- against a model --- */

enum { MODEL_MAX = 4000 };

struct model {
    struct {
        int key, request;
        int64_t at;
    } arrivals[MODEL_MAX + 1]; /* by number */
    int64_t first, last;
};

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static int64_t model_find(const struct model *m, const struct signal_dedup_rules *rules, int key,
                          int64_t now)
{
    for (int64_t n = m->last; n >= m->first && n > m->last - rules->max_keys; n--) {
        if (m->arrivals[n].key == key && now - m->arrivals[n].at <= rules->window_ms)
            return n;
    }
    return 0;
}

static void model_add(struct model *m, const struct signal_dedup_rules *rules, int key, int request,
                      int64_t now)
{
    m->last++;
    m->arrivals[m->last].key = key;
    m->arrivals[m->last].request = request;
    m->arrivals[m->last].at = now;
    while (m->first < m->last && (now - m->arrivals[m->first].at > rules->window_ms ||
                                  m->last - m->first + 1 > rules->max_keys))
        m->first++;
}

static void simulated_run(struct fixture *h, struct model *m, uint64_t seed)
{
    *m = (struct model){.first = 1};
    for (int step = 0; step < MODEL_MAX; step++) {
        uint64_t dice = next_random(&seed);
        h->now_ms += (int64_t)(next_random(&seed) % 200);
        if (dice % 50 == 0)
            h->now_ms -= (int64_t)(next_random(&seed) % 5000);
        if (dice % 97 == 0)
            h->now_ms += (int64_t)(next_random(&seed) % 20000);
        if (dice % 61 == 0)
            h->rules.max_keys = 1 + (int64_t)(next_random(&seed) % 40);
        if (dice % 89 == 0)
            h->rules.window_ms = 1 + (int64_t)(next_random(&seed) % 4000);
        int key = (int)(next_random(&seed) % 60);
        int request = next_random(&seed) % 20 == 0;
        char name[16];
        (void)snprintf(name, sizeof(name), "key-%d", key);
        int64_t known = model_find(m, &h->rules, key, h->now_ms);
        int64_t seq = 0;
        enum signal_dedup_verdict verdict = deliver(h, name, request ? "r1" : "r0", &seq);
        enum signal_dedup_verdict wanted = known == 0 ? SIGNAL_NEW
                                           : m->arrivals[known].request == request
                                               ? SIGNAL_DUPLICATE
                                               : SIGNAL_REUSED;
        if (verdict != wanted || (known != 0 && seq != known))
            fail_msg("step %d: %s: verdict %d, wanted %d; number %" PRId64 ", wanted %" PRId64,
                     step, name, (int)verdict, (int)wanted, seq, known);
        if (known == 0)
            model_add(m, &h->rules, key, request, h->now_ms);
        struct signal_dedup_view view = view_of(h);
        assert_int_equal(view.first, m->first);
        assert_int_equal(view.last, m->last);
    }
    assert_true(number_of(h->db, "SELECT count(*) FROM dedup") <= 2 * 40 + 2 * 64);
    assert_int_equal(number_of(h->db, "SELECT count(*) FROM dedup d JOIN dedup_windows w"
                                      " ON w.owner = d.owner WHERE (d.num < w.forgotten)"
                                      " OR (d.num < w.emptied AND d.key IS NOT NULL)"
                                      " OR (d.num >= w.emptied AND d.key IS NULL)"),
                     0);
}

static void random_arrivals_fare_as_in_the_model(void **state)
{
    struct model *m = malloc(sizeof(*m));
    assert_non_null(m);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct fixture *h = fixture_open(*state);
        simulated_run(h, m, seed * 0x9E3779B97F4A7C15u);
        fixture_close(h);
        (void)unlink(path_in(*state, "p.db").text);
    }
    free(m);
}

/* --- rows that pawl did not write --- */

static void a_row_of_another_form_is_no_duplicate(void **state)
{
    struct fixture *h = fixture_open(*state);
    int64_t seq = 0;
    bool found = true;
    assert_new(h, "a");
    turn_begin(h);
    run_sql(h->db, "UPDATE dedup SET request = zeroblob(40)");
    turn_end(h);
    assert_int_equal(deliver(h, "a", "r", &seq), SIGNAL_REUSED);
    assert_ok(signal_dedup_find(h->db, OWNER, STR("a"), &found, &seq));
    assert_true(found && seq == 1);
    turn_begin(h);
    run_sql(h->db, "UPDATE dedup SET key = 'b'"); /* with a's hash */
    turn_end(h);
    assert_ok(signal_dedup_find(h->db, OWNER, STR("a"), &found, &seq));
    assert_false(found);
    assert_new(h, "a");
    fixture_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(a_key_brings_back_its_first_number),
        folder_test(a_key_with_another_signal_is_refused),
        folder_test(owners_have_keys_of_their_own),
        folder_test(a_key_without_a_fingerprint_fits_any_signal),
        folder_test(a_shared_hash_does_not_make_a_key_known),
        folder_test(readers_find_the_number_of_a_key),
        folder_test(keys_leave_by_count_the_oldest_first),
        folder_test(keys_leave_by_age_when_the_next_one_comes),
        folder_test(a_new_signal_learns_up_to_which_signal_keys_are_gone),
        folder_test(a_window_of_one_key_knows_the_newest),
        folder_test(a_clock_that_goes_back_forgets_nothing),
        folder_test(a_clock_that_was_far_ahead_still_leaves_room),
        folder_test(duplicates_are_counted_by_their_age),
        folder_test(keys_that_left_are_missed_for_a_further_window),
        folder_test(counts_wait_for_the_sweep),
        folder_test(a_rollback_takes_its_counts_back),
        cmocka_unit_test(more_types_than_fit_are_not_counted),
        folder_test(a_steady_stream_pays_a_few_rows_per_key),
        folder_test(one_arrival_after_a_quiet_month_does_bounded_work),
        folder_test(lower_limits_hold_at_once_and_are_caught_up_with),
        folder_test(an_owner_that_is_gone_leaves_nothing),
        folder_test(random_arrivals_fare_as_in_the_model),
        folder_test(a_row_of_another_form_is_no_duplicate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
