/* Versions of an entity type: migration, and rules and queues that change. */
#include "engine/entity_actions.h"

/* --- versions --- */

static enum err migrate(struct fixture *fixture, const char *id, int64_t version)
{
    struct call c;
    call_init(&c, fixture, &UC_MIGRATE_ENTITY);
    struct migrate_entity_input in = {COUNTER, str_of(id), version};
    c.op.input = &in;
    enum err e = perform(&c);
    call_release(&c);
    return e;
}

static void an_entity_stays_with_its_version_until_it_is_migrated(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "a", NULL, 1);
    (void)handle_all(fixture, "");
    count_with(fixture, ",'version':2");
    (void)must_send(fixture, "a", NULL, 2);
    (void)must_send(fixture, "b", NULL, 2);
    (void)handle_all(fixture, "");
    assert_int_equal(entity_number(fixture, "a", "type_version"), 1);
    assert_int_equal(entity_number(fixture, "b", "type_version"), 2);
    int64_t generation = entity_number(fixture, "a", "generation");
    assert_int_equal(migrate(fixture, "a", 3), ERR_VERSION_UNKNOWN);
    assert_int_equal(migrate(fixture, "a", -1), ERR_OK);
    assert_int_equal(migrate(fixture, "a", 2), ERR_OK); /* again */
    (void)must_send(fixture, "a", NULL, 4);             /* waits for the new version */
    struct handed h = claim_call(fixture, 30000);
    assert_string_equal(json_string_value(json_object_get(h.input, "kind")), "migrate");
    assert_int_equal(json_array_size(json_object_get(h.input, "signals")), 0);
    assert_int_equal(json_integer_value(json_object_get(h.input, "to_version")), 2);
    assert_int_equal(
        finish_call(fixture, &h, "{\"state\":{\"sum\":100,\"count\":2,\"last\":2}}", true), ERR_OK);
    json_decref(h.job);
    assert_int_equal(entity_number(fixture, "a", "type_version"), 2);
    assert_int_equal(entity_number(fixture, "a", "state_version"), 2);
    assert_int_equal(entity_number(fixture, "a", "generation"), generation + 1);
    assert_int_equal(handle_all(fixture, ""), 1);
    assert_int_equal(state_number(fixture, "a", "sum"), 104);
    assert_int_equal(migrate(fixture, "a", 2), ERR_OK); /* is there already */
    assert_int_equal(migrate(fixture, "a", 1), ERR_VERSION_UNKNOWN);
    assert_null(claim_call(fixture, 30000).job);
}

/* Handlers of the old version may be gone: whatever nobody is working on makes way. */
static void a_migration_does_not_wait_for_calls_of_the_old_version(void **state)
{
    struct fixture *fixture = *state;
    static const char *const LAST_HEARD[] = {"never", "failed", "retrying", "lost"};
    for (size_t i = 0; i < ARRAY_LEN(LAST_HEARD); i++) {
        const char *id = LAST_HEARD[i];
        char more[32];
        (void)snprintf(more, sizeof(more), ",'version':%zu", 2 * i + 1);
        count_with(fixture, more);
        (void)must_send(fixture, id, NULL, 1);
        (void)handle_all(fixture, ",\"set_timers\":[{\"name\":\"t\",\"in_ms\":10}]");
        fixture_pass_ms(fixture, 11);
        settle(fixture); /* the timer is due, and told to the call that fails */
        (void)must_send(fixture, id, NULL, 2);
        struct handed h = {0};
        if (i > 0)
            h = claim_call(fixture, 1000);
        if (i == 1 || i == 2)
            assert_int_equal(finish_call(fixture, &h, NULL, i == 2), ERR_OK);
        (void)snprintf(more, sizeof(more), ",'version':%zu", 2 * i + 2);
        count_with(fixture, more);
        assert_int_equal(migrate(fixture, id, -1), ERR_OK);
        fixture_pass_ms(fixture, 1001);
        settle(fixture);
        struct handed next = claim_call(fixture, 30000);
        assert_non_null(next.job);
        assert_string_equal(json_string_value(json_object_get(next.input, "kind")), "migrate");
        if (i > 0)
            assert_int_equal(finish_call(fixture, &h, "{}", true), ERR_LEASE_LOST);
        assert_int_equal(
            finish_call(fixture, &next, "{\"state\":{\"sum\":1,\"count\":1,\"last\":1}}", true),
            ERR_OK);
        json_decref(next.job);
        json_decref(h.job);
        next = claim_call(fixture, 30000);
        assert_int_equal(json_array_size(json_object_get(next.input, "timers")), 1);
        char answer[512];
        sum_up(&next, "", answer);
        assert_int_equal(finish_call(fixture, &next, answer, true), ERR_OK);
        json_decref(next.job);
        assert_int_equal(state_number(fixture, id, "sum"), 3);
        assert_entity_is(fixture, id, "idle");
        assert_int_equal(in_file(fixture, "SELECT count(*) FROM jobs WHERE dead_at IS NOT NULL"),
                         0);
    }
}

static void a_released_call_makes_way_for_a_migration(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "a", NULL, 1);
    struct handed h = claim_call(fixture, 30000);
    count_with(fixture, ",'version':2");
    assert_int_equal(migrate(fixture, "a", 2), ERR_OK);
    assert_null(claim_call(fixture, 30000).job); /* while a worker is at it */
    struct call c;
    call_init(&c, fixture, &UC_RELEASE_JOB);
    struct heartbeat_input in = {h.id, str_of(h.token), STR_NONE};
    c.op.input = &in;
    must_perform(&c);
    call_release(&c);
    struct handed next = claim_call(fixture, 30000);
    assert_non_null(next.job);
    assert_string_equal(json_string_value(json_object_get(next.input, "kind")), "migrate");
    assert_int_equal(finish_call(fixture, &h, "{}", true), ERR_LEASE_LOST);
    assert_int_equal(finish_call(fixture, &next, "{}", true), ERR_OK);
    json_decref(h.job);
    json_decref(next.job);
    assert_int_equal(handle_all(fixture, ""), 1);
    assert_int_equal(state_number(fixture, "a", "sum"), 1);
}

static void it_cannot_stay_where_it_is_while_another_version_is_asked_for(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "a", NULL, 1);
    (void)handle_all(fixture, "");
    count_with(fixture, ",'version':2");
    assert_int_equal(migrate(fixture, "a", 1), ERR_OK); /* is there already */
    assert_int_equal(migrate(fixture, "a", 2), ERR_OK);
    assert_int_equal(migrate(fixture, "a", 1), ERR_ENTITY_MIGRATING);
    assert_int_equal(entity_number(fixture, "a", "migrating_to"), 2);
}

static void a_migration_that_nobody_makes_can_be_led_elsewhere(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "a", NULL, 1);
    (void)handle_all(fixture, "");
    count_with(fixture, ",'version':2");
    count_with(fixture, ",'version':3");
    count_with(fixture, ",'version':4");
    assert_int_equal(migrate(fixture, "a", 2), ERR_OK);
    struct handed h = claim_call(fixture, 30000);
    assert_int_equal(migrate(fixture, "a", 3), ERR_ENTITY_MIGRATING); /* while a worker is at it */
    assert_int_equal(finish_call(fixture, &h, NULL, false), ERR_OK);
    assert_entity_is(fixture, "a", "blocked");
    json_decref(h.job);
    assert_int_equal(migrate(fixture, "a", 3), ERR_OK);
    assert_int_equal(migrate(fixture, "a", 4), ERR_OK);
    h = claim_call(fixture, 30000);
    assert_int_equal(json_integer_value(json_object_get(h.input, "to_version")), 4);
    assert_int_equal(finish_call(fixture, &h, "{\"state\":{\"sum\":9}}", true), ERR_OK);
    json_decref(h.job);
    assert_int_equal(entity_number(fixture, "a", "type_version"), 4);
    assert_entity_is(fixture, "a", "idle");
}

static void one_that_finishes_before_it_is_migrated_stays_finished(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "a", NULL, 1);
    struct handed h = claim_call(fixture, 30000);
    count_with(fixture, ",'version':2");
    assert_int_equal(migrate(fixture, "a", 2), ERR_OK);
    assert_int_equal(finish_call(fixture, &h, "{\"state\":{\"sum\":7},\"finished\":true}", true),
                     ERR_OK);
    json_decref(h.job);
    assert_entity_is(fixture, "a", "finished");
    assert_int_equal(state_number(fixture, "a", "sum"), 7);
    assert_null(claim_call(fixture, 30000).job);
    (void)must_send(fixture, "a", NULL, 2);
    assert_int_equal(entity_number(fixture, "a", "type_version"), 2);
}

/* What is remembered of types must not outlive a change of them. */
static void rules_that_are_put_anew_hold_at_once(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, ",'max_inbox':1");
    (void)must_send(fixture, "a", NULL, 1);
    assert_int_equal(send_signal(fixture, "a", NULL, 1).err, ERR_INBOX_FULL);
    count_with(fixture, ",'max_inbox':2,'max_batch':1");
    (void)must_send(fixture, "a", NULL, 1);
    assert_int_equal(send_signal(fixture, "a", NULL, 1).err, ERR_INBOX_FULL);
    assert_int_equal(handle_all(fixture, ""), 2);
}

static void open_calls_follow_their_version_to_another_queue(void **state)
{
    struct fixture *fixture = *state;
    enum { MANY = 450 }; /* more than one slice */
    assert_int_equal(put_entity_type(fixture, "{'queue':'old','handler':'h'}"), ERR_OK);
    for (int i = 0; i < MANY; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "e%d", i);
        (void)must_send(fixture, id, NULL, 1);
    }
    assert_null(claim_call(fixture, 1000).job); /* claims from the queue "default" */
    assert_int_equal(put_entity_type(fixture, "{'queue':'default','handler':'h'}"), ERR_OK);
    for (int i = 0; i < 8; i++) {
        fixture_pass_ms(fixture, 1100);
        settle(fixture);
    }
    assert_int_equal(handle_all(fixture, ""), MANY);
    assert_int_equal(
        in_file(fixture, "SELECT count(*) FROM entity_type_versions WHERE requeued IS NOT NULL"),
        0);
}

static void a_migration_follows_the_version_that_it_leads_to_to_another_queue(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "a", NULL, 1);
    (void)handle_all(fixture, "");
    assert_int_equal(put_entity_type(fixture, "{'queue':'typo','handler':'h','version':2}"),
                     ERR_OK);
    assert_int_equal(migrate(fixture, "a", 2), ERR_OK);
    assert_null(claim_call(fixture, 30000).job); /* claims from the queue "default" */
    assert_int_equal(put_entity_type(fixture, "{'queue':'default','handler':'h','version':2}"),
                     ERR_OK);
    fixture_pass_ms(fixture, 1100);
    settle(fixture);
    struct handed h = claim_call(fixture, 30000);
    assert_non_null(h.job);
    assert_string_equal(json_string_value(json_object_get(h.input, "kind")), "migrate");
    json_decref(h.job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(an_entity_stays_with_its_version_until_it_is_migrated),
        fixture_test(a_migration_does_not_wait_for_calls_of_the_old_version),
        fixture_test(a_released_call_makes_way_for_a_migration),
        fixture_test(it_cannot_stay_where_it_is_while_another_version_is_asked_for),
        fixture_test(a_migration_that_nobody_makes_can_be_led_elsewhere),
        fixture_test(one_that_finishes_before_it_is_migrated_stays_finished),
        fixture_test(rules_that_are_put_anew_hold_at_once),
        fixture_test(open_calls_follow_their_version_to_another_queue),
        fixture_test(a_migration_follows_the_version_that_it_leads_to_to_another_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
