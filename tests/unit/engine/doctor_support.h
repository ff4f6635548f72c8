/* Asking the doctor, and a file that is damaged while no engine runs, for the tests about both. */
#ifndef PAWL_TESTS_DOCTOR_SUPPORT_H
#define PAWL_TESTS_DOCTOR_SUPPORT_H

#include "engine/entity_actions.h"
#include "engine/run/timer_rows.h"

#include "store/doctor/check.h"

/* --- asking --- */

static inline json_t *ask_keyed(struct fixture *fixture, const struct use_case *use_case,
                                const char *key, struct doctor_findings *findings)
{
    struct doctor_input in = {findings};
    struct call c;
    call_init(&c, fixture, use_case);
    c.op.input = &in;
    if (key != NULL)
        call_key(&c, key, "");
    must_perform(&c);
    json_t *body = parsed_str(buf_str(&c.op.answer.body));
    call_release(&c);
    return body;
}

static inline json_t *ask(struct fixture *fixture, const struct use_case *use_case)
{
    struct doctor_findings findings;
    return ask_keyed(fixture, use_case, NULL, &findings);
}

static inline bool is_ok(const json_t *report)
{
    return json_is_true(json_object_get(report, "ok"));
}

static inline const char *first_finding(const json_t *report)
{
    size_t i;
    json_t *check;
    json_array_foreach (json_object_get(report, "checks"), i, check) {
        const json_t *found = json_array_get(json_object_get(check, "found"), 0);
        if (found != NULL)
            return json_string_value(json_object_get(found, "what"));
    }
    return "nothing";
}

static inline void assert_healthy(struct fixture *fixture)
{
    json_t *report = ask(fixture, &UC_DOCTOR);
    if (!is_ok(report))
        fail_msg("the doctor found: %s", first_finding(report));
    assert_int_equal(json_array_size(json_object_get(report, "checks")), DOCTOR_CHECK_COUNT);
    json_decref(report);
}

static inline int64_t repaired(struct fixture *fixture)
{
    json_t *report = ask(fixture, &UC_DOCTOR_REPAIR);
    int64_t count = json_integer_value(json_object_get(report, "repaired"));
    json_decref(report);
    return count;
}

/* --- the file of an engine that does not run --- */

static inline void damage(struct fixture *fixture, const char *sql)
{
    struct raw raw = raw_open(fixture->file.text);
    raw_exec(&raw, FOLD_COUNTERS);
    raw_exec(&raw, FOLD_TIMERS);
    raw_exec(&raw, sql);
    raw_close(&raw);
}

static inline void restart_damaged(struct fixture *fixture, const char *sql)
{
    fixture_stop(fixture);
    damage(fixture, sql);
    fixture_start(fixture, 0);
}

/* Before the writer has touched it: some damages are mended by the next dispatch anyway. */
static inline struct check_result look_at_file(struct fixture *fixture)
{
    struct db *db = open_reader(fixture->file.text);
    struct check_result result = {0};
    for (enum check_area area = 0; area < CHECK_AREA_COUNT; area++)
        assert_ok(check_area(db, area, CHECK_FULL, NULL, NULL, &result));
    int64_t lost = 0;
    int64_t broken = 0;
    assert_ok(idem_keys_check(db, &lost, &broken));
    result.found += lost + broken;
    result.derived += lost + broken;
    db_close(db);
    return result;
}

/* --- a busy history --- */

#define KEYED                                                   \
    "{'concurrency':[{'limit':5},{'key':'input.c','limit':2}]," \
    "'steps':[{'name':'a','type':'task','handler':'h'}]}"

/* ERR_OK, or the refusal. */
static inline enum err start_as(struct fixture *fixture, const char *tenant, const char *workflow,
                                const char *input_text, enum at_limit at_limit, int64_t priority,
                                struct uuid *ret)
{
    struct json *input = json_value_of_tree(json_of(input_text));
    struct buf text;
    buf_init(&text, KIB);
    json_write_plain(&text, input);
    struct call c;
    start_init(&c, fixture, workflow);
    c.op.caller.tenant = str_of(tenant);
    c.input.start.input = input;
    c.input.start.input_text = buf_str(&text);
    c.input.start.at_limit = at_limit;
    c.input.start.priority = priority;
    enum err e = perform(&c);
    if (e == ERR_OK && ret != NULL)
        *ret = c.op.answer.run_id;
    call_release(&c);
    buf_release(&text);
    json_free(input);
    return e;
}

static inline struct uuid must_start(struct fixture *fixture, const char *workflow,
                                     const char *input, int64_t priority)
{
    struct uuid id = {{0}};
    assert_int_equal(start_as(fixture, "acme", workflow, input, AT_LIMIT_QUEUE, priority, &id),
                     ERR_OK);
    return id;
}

#endif
