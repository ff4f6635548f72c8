/* Reads of event streams: where they begin, how far they come, and when something was missed. */
#include "engine/usecase/asking.h"

#include "core/usecase/stream_event.h"

static const struct use_case *const RUN_STREAM = &UC_STREAM_RUN;
static const struct use_case *const ENTITY_STREAM = &UC_STREAM_ENTITY;
static const struct use_case *const TENANT_STREAM = &UC_STREAM_TENANT;

struct streamed {
    enum err err;
    size_t count;
    bool reset; /* the first event says that some were missed */
    struct stream_read read;
};

static struct streamed stream(struct fixture *fixture, const struct use_case *use_case,
                              struct read_stream_input in, struct stream_read read)
{
    struct streamed s = {.read = read};
    in.read = &s.read;
    struct asked a = ask_as(fixture, "acme", true, use_case, &in);
    s.err = a.err;
    asked_release(&a);
    for (const struct stream_event *e = s.read.first; s.err == ERR_OK && e != NULL; e = e->next)
        s.count++;
    if (s.err == ERR_OK) {
        s.reset = s.read.first != NULL && str_is(s.read.first->type, "reset");
        stream_events_release(s.read.first);
    }
    s.read.first = NULL;
    return s;
}

static struct read_stream_input of_run(struct uuid id)
{
    return (struct read_stream_input){.owner_id = id};
}

static struct read_stream_input of_entity(void)
{
    return (struct read_stream_input){.entity_type = COUNTER, .entity_id = STR("a")};
}

static const struct read_stream_input OF_TENANT = {.read = NULL};
static const struct stream_read FROM_START = {.from = {0, 0}};

/* --- runs --- */

static void a_run_is_followed_to_its_end(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct uuid run = start(fixture, "w");
    struct streamed s = stream(fixture, RUN_STREAM, of_run(run), FROM_START);
    assert_int_equal(s.err, ERR_OK);
    assert_true(s.count > 0 && !s.read.over);
    struct stream_read rest = {.from = s.read.through};
    assert_int_equal(stream(fixture, RUN_STREAM, of_run(run), rest).count, 0);
    work(fixture, "a");
    s = stream(fixture, RUN_STREAM, of_run(run), rest);
    assert_true(s.count > 0 && s.read.over);
    struct uuid none = {{1, 2, 3}};
    assert_int_equal(stream(fixture, RUN_STREAM, of_run(none), FROM_START).err, ERR_RUN_NOT_FOUND);
}

static void a_long_run_is_read_in_parts(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':[{'name':'a','type':'task','handler':'h','for_each':'input'}]}");
    char input[4 * KIB] = "[1";
    for (int i = 1; i < 2 * STREAM_EVENTS_MAX && i < 900; i++)
        (void)snprintf(input + 2 * i, sizeof(input) - 2 * (size_t)i, ",1");
    (void)snprintf(input + strlen(input), 2, "]");
    struct uuid run = start_with(fixture, "w", input);
    for (struct held h; claim_one(fixture, 60000, &h);)
        assert_int_equal(complete(fixture, &h), ERR_OK);
    struct stream_read at = FROM_START;
    int64_t total = 0;
    bool more = true;
    for (int parts = 0; more; parts++) {
        struct streamed s = stream(fixture, RUN_STREAM, of_run(run), at);
        assert_int_equal(s.err, ERR_OK);
        total += (int64_t)s.count;
        more = s.read.more;
        at = (struct stream_read){.from = s.read.through};
        assert_true(parts < 100);
    }
    assert_int_equal(total, in_file(fixture, "SELECT count(*) FROM events"));
    at = FROM_START;
    total = 0;
    for (more = true; more;) { /* and with the whole tenant */
        struct streamed s = stream(fixture, TENANT_STREAM, OF_TENANT, at);
        assert_int_equal(s.err, ERR_OK);
        total += (int64_t)s.count;
        more = s.read.more;
        at = (struct stream_read){.from = s.read.through};
    }
    assert_int_equal(total, in_file(fixture, "SELECT count(*) FROM events"));
}

/* --- entities --- */

static void an_entity_is_followed_until_it_is_deleted(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    assert_int_equal(stream(fixture, ENTITY_STREAM, of_entity(), FROM_START).err,
                     ERR_ENTITY_NOT_FOUND);
    (void)must_send(fixture, "a", NULL, 1);
    (void)handle_all(fixture, "");
    struct streamed s = stream(fixture, ENTITY_STREAM, of_entity(), FROM_START);
    assert_true(s.count > 0 && !s.reset && !s.read.over);
    struct uuid id = s.read.owner_id;
    struct entity_input gone = {COUNTER, STR("a")};
    must_do(fixture, &UC_DELETE_ENTITY, &gone);
    struct stream_read rest = {.from = s.read.through};
    s = stream(fixture, ENTITY_STREAM, of_run(id), rest);
    assert_true(s.read.over);
    struct read_stream_input other = {.entity_type = STR("none"), .entity_id = STR("a")};
    assert_int_equal(stream(fixture, ENTITY_STREAM, other, FROM_START).err, ERR_ENTITY_NOT_FOUND);
}

static void a_gap_in_an_entitys_events_is_said(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    for (int i = 0; i < 4; i++) {
        (void)must_send(fixture, "a", NULL, i);
        (void)handle_all(fixture, "");
    }
    struct streamed s = stream(fixture, ENTITY_STREAM, of_entity(), FROM_START);
    assert_true(s.count > 4 && !s.reset);
    struct stream_read ahead = {.from = {0, s.read.through.seq + 100}};
    s = stream(fixture, ENTITY_STREAM, of_entity(), ahead); /* it knows another of this name */
    assert_true(s.reset);
    tamper(fixture, "DELETE FROM timeline WHERE seq ="
                    " (SELECT min(seq) FROM timeline WHERE seq > 1)");
    struct stream_read known = {.from = {0, 1}};
    assert_true(stream(fixture, ENTITY_STREAM, of_entity(), known).reset);
    assert_false(stream(fixture, ENTITY_STREAM, of_entity(), FROM_START).reset);
}

/* --- a tenant --- */

static void a_tenant_is_followed_from_now_or_from_a_place(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    (void)start(fixture, "w");
    struct stream_read now = {.from_now = true};
    struct streamed s = stream(fixture, TENANT_STREAM, OF_TENANT, now);
    assert_int_equal(s.err, ERR_OK);
    assert_true(s.count == 0 && !s.reset);
    struct stream_read rest = {.from = s.read.through};
    (void)start(fixture, "w");
    s = stream(fixture, TENANT_STREAM, OF_TENANT, rest);
    assert_true(s.count > 0 && !s.reset);
    struct stream_read within = {
        .from = {rest.from.num + 1, 1}}; /* one event of the row is known */
    struct streamed less = stream(fixture, TENANT_STREAM, OF_TENANT, within);
    assert_int_equal(less.count, s.count - 1);
    struct stream_read next_row = {.from = {s.read.through.num + 1, 0}};
    assert_false(stream(fixture, TENANT_STREAM, OF_TENANT, next_row).reset);
    struct stream_read never = {.from = {s.read.through.num + 100, 3}};
    assert_true(stream(fixture, TENANT_STREAM, OF_TENANT, never).reset);
}

static void a_place_that_was_swept_is_said(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    for (int i = 0; i < 5; i++)
        (void)start(fixture, "w");
    tamper(fixture, "DELETE FROM feed_packs WHERE num <= 3;"
                    "INSERT INTO feed_marks (name, through) VALUES ('swept', 3)"
                    " ON CONFLICT (name) DO UPDATE SET through = excluded.through");
    struct stream_read old = {.from = {2, 1}};
    struct streamed s = stream(fixture, TENANT_STREAM, OF_TENANT, old);
    assert_true(s.reset && s.count > 1);
    struct stream_read whole = {.from = {3, INT64_MAX}}; /* it has had all that was swept */
    assert_false(stream(fixture, TENANT_STREAM, OF_TENANT, whole).reset);
}

/* Its rows were 101 to 105 in another store, of which 90 rows had been swept, and are 1 to 5 here.
 */
static void a_tenant_that_was_moved_is_followed_by_the_positions_that_its_clients_have(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    for (int i = 0; i < 5; i++)
        (void)start(fixture, "w");
    struct streamed whole = stream(fixture, TENANT_STREAM, OF_TENANT, FROM_START);
    assert_true(whole.count > 0 && !whole.reset && whole.read.shift == 0);
    tamper(fixture, "INSERT INTO moved_feeds SELECT num, -100, 0, 90, 0, 0, 0 FROM tenants"
                    " WHERE id = 'acme'");
    struct stream_read first = {.from = {101, 0}, .from_client = true};
    struct streamed s = stream(fixture, TENANT_STREAM, OF_TENANT, first);
    assert_true(s.count == whole.count && !s.reset);
    assert_int_equal(s.read.shift, -100);
    struct stream_read rest = {.from = s.read.through}; /* not a client's */
    s = stream(fixture, TENANT_STREAM, OF_TENANT, rest);
    assert_true(s.count == 0 && !s.reset);
    struct stream_read before = {.from = {95, 3}, .from_client = true};
    s = stream(fixture, TENANT_STREAM, OF_TENANT, before);
    assert_true(s.count == whole.count && !s.reset);
    struct stream_read missed = {.from = {80, 1}, .from_client = true};
    s = stream(fixture, TENANT_STREAM, OF_TENANT, missed);
    assert_true(s.reset && s.count == whole.count + 1);
    struct stream_read next_row = {.from = {s.read.through.num + 101, 0}, .from_client = true};
    assert_false(stream(fixture, TENANT_STREAM, OF_TENANT, next_row).reset);
    struct stream_read never = {.from = {INT64_MAX, 3}, .from_client = true};
    assert_true(stream(fixture, TENANT_STREAM, OF_TENANT, never).reset);
    tamper(fixture, "DELETE FROM feed_packs WHERE num <= 3;"
                    "INSERT INTO feed_marks (name, through) VALUES ('swept', 3)"
                    " ON CONFLICT (name) DO UPDATE SET through = excluded.through");
    struct stream_read swept = {.from = {102, 1}, .from_client = true};
    assert_true(stream(fixture, TENANT_STREAM, OF_TENANT, swept).reset);
    struct stream_read kept = {.from = {104, 0}, .from_client = true};
    assert_false(stream(fixture, TENANT_STREAM, OF_TENANT, kept).reset);
}

static void a_tenant_that_is_not_stored_has_no_events(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    (void)start(fixture, "w");
    struct stream_read read = FROM_START;
    struct read_stream_input in = {.read = &read};
    struct asked a = ask_as(fixture, "fresh", true, TENANT_STREAM, &in);
    assert_int_equal(a.err, ERR_OK);
    assert_null(read.first);
    a = ask_as(fixture, "nobody", false, TENANT_STREAM, &in);
    assert_int_equal(a.err, ERR_TENANT_NOT_FOUND);
    a = ask_as(fixture, "nobody", false, RUN_STREAM, &in);
    assert_int_equal(a.err, ERR_TENANT_NOT_FOUND);
    a = ask_as(fixture, "nobody", false, ENTITY_STREAM, &in);
    assert_int_equal(a.err, ERR_TENANT_NOT_FOUND);
}

static void places_are_ordered_by_row_and_then_by_event(void **state)
{
    (void)state;
    static const struct stream_position PLACES[] = {{1, 9}, {2, 1}, {2, 2}, {3, 0}};
    for (size_t i = 0; i < ARRAY_LEN(PLACES); i++) {
        for (size_t j = 0; j < ARRAY_LEN(PLACES); j++)
            assert_int_equal(stream_position_cmp(PLACES[i], PLACES[j]), (i > j) - (i < j));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_run_is_followed_to_its_end),
        fixture_test(a_long_run_is_read_in_parts),
        fixture_test(an_entity_is_followed_until_it_is_deleted),
        fixture_test(a_gap_in_an_entitys_events_is_said),
        fixture_test(a_tenant_is_followed_from_now_or_from_a_place),
        fixture_test(a_place_that_was_swept_is_said),
        fixture_test(a_tenant_that_was_moved_is_followed_by_the_positions_that_its_clients_have),
        fixture_test(a_tenant_that_is_not_stored_has_no_events),
        cmocka_unit_test(places_are_ordered_by_row_and_then_by_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
