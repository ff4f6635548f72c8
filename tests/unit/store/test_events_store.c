/* Timelines as rows: packing, and reading what is packed. */
#include "store/event_support.h"

#include "base/limits.h"
#include "base/support.h"
#include "store/rows.h"
#include "store/run/retention.h"
#include "store/run/runs.h"

/* --- packing --- */

enum { SEEN_MAX = 64, SHOWN_MAX = 200 };

struct seen {
    struct event events[SEEN_MAX];
    char texts[SEEN_MAX][SHOWN_MAX]; /* "type|data|published_as" */
    size_t count;
    size_t stop_after; /* 0: never */
};

static void note(void *ctx, const struct event *event)
{
    struct seen *s = ctx;
    assert_true(s->count < SEEN_MAX);
    s->events[s->count] = *event;
    (void)snprintf(s->texts[s->count], SHOWN_MAX, "%.*s|%.*s|%.*s", STR_ARG(event->type),
                   STR_ARG(event->data), STR_ARG(event->published_as));
    s->count++;
}

static bool note_packed(void *ctx, const struct event *event)
{
    struct seen *s = ctx;
    note(ctx, event);
    return s->count != s->stop_after;
}

static void packed_events_come_back_as_they_were(void **state)
{
    const struct event EVENTS[] = {
        {.type = STR("run.created"), .data = STR("{\"a\":[1,{\"b\":\"]}\\\"\\\\\"}]}"), .job = -1},
        {.type = STR("run.started"), .job = -1},
        {.type = STR("job.created"), .data = STR("{}"), .job = 7},
        {.type = STR("job.released"), .job = JOB_ORDINAL_MAX},
        {.type = STR("event.emitted"), .job = -1, .published_as = STR("order.paid")},
        {.type = STR("job.approved"), .data = STR("{}"), .job = 0, .published_as = STR("id")},
    };
    (void)state;
    struct buf packed;
    buf_init(&packed, KIB);
    for (size_t i = 0; i < ARRAY_LEN(EVENTS); i++)
        event_pack(&packed, &EVENTS[i]);
    event_pack_end(&packed);
    struct seen seen = {.count = 0};
    assert_int_equal(event_unpack(buf_str(&packed), note_packed, &seen), ARRAY_LEN(EVENTS));
    assert_int_equal(seen.count, ARRAY_LEN(EVENTS));
    for (size_t i = 0; i < seen.count; i++) {
        assert_int_equal(seen.events[i].seq, i + 1);
        assert_int_equal(seen.events[i].job, EVENTS[i].job);
        assert_true(str_eq(seen.events[i].type, EVENTS[i].type));
        assert_true(str_eq(seen.events[i].data, EVENTS[i].data));
        assert_true(str_eq(seen.events[i].published_as, EVENTS[i].published_as));
        assert_true((seen.events[i].data.ptr == NULL) == (EVENTS[i].data.ptr == NULL));
    }
    seen = (struct seen){.stop_after = 2};
    assert_int_equal(event_unpack(buf_str(&packed), note_packed, &seen), ARRAY_LEN(EVENTS));
    assert_int_equal(seen.count, 2);
    buf_release(&packed);
}

static void every_other_text_is_refused(void **state)
{
    static const char *const BAD[] = {
        "",
        "[",
        "[]",
        "{}",
        "null",
        "[[]]",
        "[[\"\"]]",
        "[[\"a]",
        "[[\"a\"",
        "[[\"a\"]",
        "[[\"a\"]]]",
        "[[\"a\"],]",
        "[[\"a\"][]]",
        "[[\"a\",]]",
        "[[\"a\",1]]",
        "[[1]]",
        "[[\"a\\n\"]]",
        "[[\"a\",{]]",
        "[[\"a\",{\"]]",
        "[[\"a\",{\"x\\\"}]]",
        "[[\"a\",[]]]",
        "[[\"a\",nul]]",
        "[[\"a\",null,x]]",
        "[[\"a\",null,-1]]",
        "[[\"a\",null,99999999]]",
        "[[\"a\",null,1,b]]",
        "[[\"a\",null,1,\"b\\u0041\"]]",
        "[[\"a\",null,1,\"b\",1]]",
        " [[\"a\"]]",
        "[[\"a\"]] ",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        struct seen seen = {.count = 0};
        if (event_unpack(str_of(BAD[i]), note_packed, &seen) != 0)
            fail_msg("%s is taken for events", BAD[i]);
    }
}

/* A text that was cut off, or in which a byte was changed, never leads outside of it. */
static void damaged_texts_are_read_to_their_end_at_most(void **state)
{
    static const char WHOLE[] = "[[\"a.b\",{\"x\":[\"\\\\\",{}]},12,\"n\"],[\"c\"],[\"d\",null,3]]";
    (void)state;
    struct rng rng = {7};
    for (int round = 0; round < 20000; round++) {
        size_t len = rng_below(&rng, sizeof(WHOLE));
        char *text = malloc(len + 1); /* so that the sanitizer sees its end */
        assert_non_null(text);
        memcpy(text, WHOLE, len);
        if (len > 0)
            text[rng_below(&rng, len)] = "[]{}\",\\1n"[rng_below(&rng, 9)];
        struct seen seen = {.count = 0};
        size_t count = event_unpack((struct str){text, len}, note_packed, &seen);
        assert_true(count == 0 || count == seen.count);
        free(text);
    }
}

/* --- rows --- */

/* Rows of 1 to 4 events up to `last`. */
static void append_rows(struct db *db, int64_t owner, int64_t last)
{
    struct buf packed;
    buf_init(&packed, KIB);
    for (int64_t seq = 1, row = 1; seq <= last; row = row % 4 + 1) {
        buf_clear(&packed);
        int64_t to = MIN(seq + row - 1, last);
        for (; seq <= to; seq++) {
            char type[24];
            (void)snprintf(type, sizeof(type), "e%lld", (long long)seq);
            struct event event = {.type = str_of(type), .data = STR("{\"d\":1}"), .job = -1};
            event_pack(&packed, &event);
        }
        event_pack_end(&packed);
        assert_ok(events_append(db, owner, to, 100 + to, buf_str(&packed)));
    }
    buf_release(&packed);
}

static void a_timeline_is_read_from_any_event_on(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    enum { LAST = 23 };
    append_rows(db, 1, LAST);
    append_rows(db, 2, 2);
    for (int64_t after = 0; after <= LAST; after++) {
        for (int64_t limit = 1; limit <= LAST + 1; limit++) {
            struct seen seen = {.count = 0};
            assert_ok(events_list(db, 1, after, limit, note, &seen));
            assert_int_equal(seen.count, MIN(limit, LAST - after));
            for (size_t i = 0; i < seen.count; i++) {
                char text[40];
                int64_t seq = after + 1 + (int64_t)i;
                (void)snprintf(text, sizeof(text), "e%lld|{\"d\":1}|", (long long)seq);
                assert_int_equal(seen.events[i].seq, seq);
                assert_true(seen.events[i].at > 100);
                assert_string_equal(seen.texts[i], text);
            }
        }
    }
    struct seen none = {.count = 0};
    assert_ok(events_list(db, 3, 0, 100, note, &none));
    assert_ok(events_list(db, 1, 0, 0, note, &none));
    assert_ok(events_list(db, 1, 4, -1, note, &none));
    assert_int_equal(none.count, 0);
    db_close(db);
}

/* As 0.1.0 wrote them. */
static void rows_of_one_event_are_read_among_the_others(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    run_sql(db,
            "INSERT INTO timeline (run, seq, at, type, data, job, published_as) VALUES"
            " (1, 1, 5, 'run.created', '{}', NULL, NULL), (1, 2, 5, 'job.approved', NULL, 3, 'x')");
    struct buf packed;
    buf_init(&packed, KIB);
    for (int i = 0; i < 3; i++)
        event_pack(&packed, &(struct event){.type = STR("later"), .job = -1});
    event_pack_end(&packed);
    assert_ok(events_append(db, 1, 5, 100, buf_str(&packed)));
    buf_release(&packed);
    struct seen seen = {.count = 0};
    assert_ok(events_list(db, 1, 0, 100, note, &seen));
    assert_int_equal(seen.count, 5);
    assert_string_equal(seen.texts[0], "run.created|{}|");
    assert_string_equal(seen.texts[1], "job.approved||x");
    assert_int_equal(seen.events[1].job, 3);
    assert_string_equal(seen.texts[4], "later||");
    assert_int_equal(
        number_of(db, "SELECT count(*) FROM events WHERE run = 1 AND seq BETWEEN 1 AND 5"), 5);
    assert_int_equal(
        number_of(db, "SELECT count(*) FROM events WHERE type = 'later' AND data IS NULL"), 3);
    db_close(db);
}

static void the_first_events_of_a_run_are_read_from_its_row(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct run run = plain_run(1, env_new_id(&ENV_SYSTEM), 9);
    run.first_events = STR("[[\"e1\",{\"d\":1}],[\"e2\"]]");
    run.version = 2;
    assert_ok(runs_insert(db, &run));
    struct arena arena;
    struct run read;
    bool found = false;
    arena_init(&arena, MIB);
    for (int64_t last = 2; last <= 3; last++) {
        struct seen seen = {.count = 0};
        assert_ok(events_list(db, 9, 0, 100, note, &seen));
        assert_int_equal(seen.count, last);
        assert_string_equal(seen.texts[0], "e1|{\"d\":1}|");
        assert_int_equal(seen.events[1].seq, 2);
        assert_int_equal(seen.events[1].at, run.created_at);
        struct seen rest = {.count = 0};
        assert_ok(events_list(db, 9, 1, 1, note, &rest));
        assert_int_equal(rest.count, 1);
        assert_string_equal(rest.texts[0], "e2||");
        assert_int_equal(number_of(db, "SELECT sum(seq) FROM events WHERE run = 9"),
                         last * (last + 1) / 2);
        assert_ok(runs_find_num(db, 9, &arena, &found, &read));
        assert_true(found && read.version == last);
        if (last == 2)
            assert_ok(events_append(db, 9, 3, 100, STR("[[\"e3\"]]")));
    }
    struct event newest;
    assert_ok(events_newest(db, 9, STR("e1"), &arena, &found, &newest));
    assert_true(found && newest.seq == 1);
    int64_t first = 0;
    assert_ok(events_first(db, 9, &first));
    assert_int_equal(first, 1);
    int64_t removed = 0;
    bool gone = true;
    assert_ok(retention_remove(db, 1, 9, 1, &removed, &gone)); /* the first events go first */
    assert_false(gone);
    assert_ok(events_first(db, 9, &first));
    assert_int_equal(first, 3);
    arena_release(&arena);
    db_close(db);
}

/* As the writer packs them; `by` as JSON has it. */
static struct run created_run(int64_t num, struct str by, struct str by_json, struct buf *events)
{
    struct run run = plain_run(1, env_new_id(&ENV_SYSTEM), num);
    run.created_by = by;
    run.version = 2;
    buf_clear(events);
    buf_printf(events,
               "[[\"run.created\",{\"workflow_id\":\"%.*s\",\"workflow_version\":%lld,"
               "\"created_by\":\"%.*s\"}],[\"e2\",{\"d\":1}]]",
               STR_ARG(run.workflow_id), (long long)run.workflow_version, STR_ARG(by_json));
    run.first_events = buf_str(events);
    return run;
}

/* The first events of a run with a job, whose id is left out only where the view puts it back. */
static void the_id_of_the_first_job_is_not_kept_in_the_events_again(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct buf events;
    buf_init(&events, 2 * KIB);
    for (int64_t num = 10; num < 14; num++) {
        struct run run = created_run(num, STR("k\xC3\xB6ln"), STR("k\xC3\xB6ln"), &events);
        struct uuid of_job = jobs_first_id(run.id);
        of_job.bytes[15] ^= num == 13; /* the id of another job */
        char job[SHOWN_MAX];
        struct buf text;
        buf_init(&text, SHOWN_MAX);
        buf_printf(&text, "{\"job_id\":\"");
        buf_put_uuid(&text, of_job);
        buf_printf(&text, "\",\"step\":\"{\"}");
        events.len = (size_t)(strstr(events.ptr, "],[") - events.ptr);
        buf_printf(&events, "]%s,[\"job.created\",%s,1]]", num == 11 ? ",[\"e2\"]" : "", text.ptr);
        run.version = num == 11 ? 3 : 2;
        run.first_events = buf_str(&events);
        assert_ok(runs_insert(db, &run));
        struct seen seen = {.count = 0};
        assert_ok(events_list(db, num, 0, 100, note, &seen));
        assert_int_equal(seen.count, run.version);
        (void)snprintf(job, sizeof(job), "job.created|%s|", text.ptr);
        assert_string_equal(seen.texts[seen.count - 1], job);
        buf_release(&text);
    }
    assert_int_equal(number_of(db, "SELECT count(*) FROM runs"
                                   " WHERE first_events LIKE '%{\"job_id\":\"\",%'"),
                     3);
    assert_int_equal(number_of(db, "SELECT count(*) FROM events WHERE type = 'job.created'"
                                   " AND data LIKE '{\"job_id\":\"________-____-____-8000-0040%'"),
                     4);
    buf_release(&events);
    db_close(db);
}

static void what_the_runs_row_says_is_not_kept_in_its_events_again(void **state)
{
    const struct {
        struct str by, by_json;
    } cases[] = {
        {STR("dev"), STR("dev")},
        {STR("k\xC3\xB6ln"), STR("k\xC3\xB6ln")},
        {STR("a\"b"), STR("a\\\"b")}, /* SQL does not escape */
        {STR("another"), STR("one")}, /* never so, but what is told is told again */
    };
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct buf events;
    buf_init(&events, KIB);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t num = 10 + (int64_t)i;
        struct run run = created_run(num, cases[i].by, cases[i].by_json, &events);
        assert_ok(runs_insert(db, &run));
        struct seen seen = {.count = 0};
        assert_ok(events_list(db, num, 0, 100, note, &seen));
        assert_int_equal(seen.count, 2);
        char created[SHOWN_MAX];
        (void)snprintf(created, sizeof(created), "run.created|%.*s|",
                       (int)(strstr(events.ptr, "],[") - strchr(events.ptr, '{')),
                       strchr(events.ptr, '{'));
        assert_string_equal(seen.texts[0], created);
        assert_string_equal(seen.texts[1], "e2|{\"d\":1}|");
    }
    assert_int_equal(number_of(db,
                               "SELECT count(*) FROM runs"
                               " WHERE first_events = '[[\"run.created\"],[\"e2\",{\"d\":1}]]'"),
                     2);
    assert_int_equal(number_of(db, "SELECT count(*) FROM events e JOIN runs r ON r.num = e.run"
                                   " WHERE e.seq = 1 AND e.data LIKE '{\"workflow_id\":\"%'"),
                     ARRAY_LEN(cases));
    buf_release(&events);
    db_close(db);
}

static void the_view_shows_event_by_event(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    append_rows(db, 1, 9);
    assert_int_equal(number_of(db, "SELECT count(*) FROM events WHERE type = 'e' || seq"), 9);
    assert_int_equal(number_of(db, "SELECT sum(seq) FROM events WHERE data ->> 'd' = 1"), 45);
    db_close(db);
}

static void the_first_and_the_newest_are_found(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct arena arena;
    arena_init(&arena, KIB);
    append_rows(db, 1, 9); /* 1, 2 3, 4 5 6, 7 8 9 */
    int64_t first = -1;
    assert_ok(events_first(db, 2, &first));
    assert_int_equal(first, 0);
    assert_ok(events_first(db, 1, &first));
    assert_int_equal(first, 1);
    run_sql(db, "DELETE FROM timeline WHERE seq < 6");
    assert_ok(events_first(db, 1, &first));
    assert_int_equal(first, 4);
    bool found = true;
    struct event event;
    assert_ok(events_newest(db, 1, STR("e3"), &arena, &found, &event));
    assert_false(found);
    assert_ok(events_newest(db, 1, STR("e5"), &arena, &found, &event));
    assert_true(found && event.seq == 5 && str_is(event.type, "e5"));
    arena_release(&arena);
    db_close(db);
}

static void a_damaged_row_is_damage(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    append_rows(db, 1, 3);
    run_sql(db, "UPDATE timeline SET data = '[[\"a\"],[\"b\"],[\"c\"],[\"d\"]]' WHERE seq = 3");
    struct seen seen = {.count = 0};
    int64_t first;
    assert_ok(events_list(db, 1, 0, 100, note, &seen)); /* it is left out */
    assert_int_equal(seen.count, 1);
    run_sql(db, "UPDATE timeline SET data = 'x'");
    assert_int_equal(events_first(db, 1, &first), ERR_DAMAGED);
    db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_events_come_back_as_they_were),
        cmocka_unit_test(every_other_text_is_refused),
        cmocka_unit_test(damaged_texts_are_read_to_their_end_at_most),
        folder_test(a_timeline_is_read_from_any_event_on),
        folder_test(rows_of_one_event_are_read_among_the_others),
        folder_test(the_first_events_of_a_run_are_read_from_its_row),
        folder_test(what_the_runs_row_says_is_not_kept_in_its_events_again),
        folder_test(the_id_of_the_first_job_is_not_kept_in_the_events_again),
        folder_test(the_view_shows_event_by_event),
        folder_test(the_first_and_the_newest_are_found),
        folder_test(a_damaged_row_is_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
