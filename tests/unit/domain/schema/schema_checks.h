/* What the tests of JSON Schema share: schemas and values in, faults as lines out. JSON in these
 * tests is written with ' for " to keep it readable. */
#ifndef PAWL_TESTS_DOMAIN_SCHEMA_CHECKS_H
#define PAWL_TESTS_DOMAIN_SCHEMA_CHECKS_H

#include "values.h"

#include "base/limits.h"
#include "domain/schema/schema.h"

static inline json_t *json_of(const char *quoted_singly)
{
    struct buf text;
    buf_init(&text, MIB);
    for (const char *c = quoted_singly; *c != '\0'; c++)
        buf_put_char(&text, *c == '\'' ? '"' : *c);
    struct problem p;
    problem_init(&p);
    json_t *json = NULL;
    if (json_parse(buf_str(&text), &p, &json) != ERR_OK)
        fail_msg("not JSON: %s: %s", p.detail, text.ptr);
    problem_release(&p);
    buf_release(&text);
    return json;
}

/* The faults of one check, as "path: message\n" lines. */
struct outcome {
    struct buf lines;
    size_t count;
    enum schema_verdict verdict; /* of a value */
    size_t work;                 /* steps that the value took */
};

static inline void outcome_of(struct outcome *o, struct fault_list *list)
{
    struct buf closed;
    buf_init(&closed, MIB);
    buf_printf(&closed, "[%.*s]", STR_ARG(buf_str(list->out)));
    struct problem p;
    problem_init(&p);
    json_t *faults = NULL;
    assert_true(buf_ok(list->out));
    assert_int_equal(list->path.len, 0);
    assert_int_equal(json_parse(buf_str(&closed), &p, &faults), ERR_OK);
    buf_init(&o->lines, MIB);
    o->count = list->count;
    size_t i;
    json_t *fault;
    json_array_foreach (faults, i, fault) {
        buf_printf(&o->lines, "%s: %s\n", json_string_value(json_object_get(fault, "path")),
                   json_string_value(json_object_get(fault, "message")));
    }
    json_decref(faults);
    problem_release(&p);
    buf_release(&closed);
}

static inline void check_schema_json(struct outcome *o, json_t *schema)
{
    struct buf out;
    buf_init(&out, PROBLEM_FAULTS_MAX);
    struct fault_list list;
    fault_list_init(&list, &out);
    struct json *checked = json_value_of_tree(schema);
    schema_check_schema(checked, &list);
    outcome_of(o, &list);
    fault_list_release(&list);
    buf_release(&out);
    json_free(checked);
}

/* Takes over both. */
static inline void check_value_json(struct outcome *o, json_t *schema_tree, json_t *value_tree)
{
    check_schema_json(o, json_incref(schema_tree));
    if (o->count != 0)
        fail_msg("bad schema: %s", o->lines.ptr);
    buf_release(&o->lines);
    struct buf out;
    buf_init(&out, PROBLEM_FAULTS_MAX);
    struct fault_list list;
    fault_list_init(&list, &out);
    struct work_budget work = {SCHEMA_WORK_MAX};
    struct json *schema = json_value_of_tree(schema_tree);
    struct json *value = json_value_of_tree(value_tree);
    o->verdict = schema_check_value(schema, value, &work, &list);
    o->work = SCHEMA_WORK_MAX - work.left;
    assert_int_equal(o->verdict == SCHEMA_GAVE_UP, work.left == 0);
    outcome_of(o, &list);
    fault_list_release(&list);
    buf_release(&out);
    json_free(schema);
    json_free(value);
}

/* A schema and a value; NULL: it fits, otherwise the lines that say why not. */
struct row {
    const char *schema;
    const char *value;
    const char *lines;
};

static inline void assert_judged(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *wanted = rows[i].lines != NULL ? rows[i].lines : "";
        struct outcome o;
        check_value_json(&o, json_of(rows[i].schema), json_of(rows[i].value));
        if (!str_is(buf_str(&o.lines), wanted))
            fail_msg("%s with %s\nwanted: %s\ngot: %.*s", rows[i].schema, rows[i].value, wanted,
                     STR_ARG(buf_str(&o.lines)));
        assert_int_equal(o.verdict, rows[i].lines == NULL ? SCHEMA_FITS : SCHEMA_MISFITS);
        buf_release(&o.lines);
    }
}

#endif
