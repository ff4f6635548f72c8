/* Parsing definitions in tests. JSON is written with ' for " to keep it readable. */
#ifndef PAWL_TESTS_DOMAIN_PARSED_DEFINITION_H
#define PAWL_TESTS_DOMAIN_PARSED_DEFINITION_H

#include "base/support.h"

#include "base/limits.h"
#include "domain/workflow/definition.h"

#include <stdio.h>
#include <stdlib.h>

/* One parse and what came of it. */
struct parsed_definition {
    struct problem problem;
    struct definition *def; /* NULL unless err is ERR_OK */
    enum err err;
    json_t *faults; /* NULL when there are none */
};

static inline json_t *json_of(const char *quoted_singly)
{
    struct buf text;
    buf_init(&text, 8 * MIB);
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

static inline void try_json(struct parsed_definition *t, json_t *source)
{
    *t = (struct parsed_definition){.def = NULL};
    problem_init(&t->problem);
    struct json *value = json_value_of_tree(source);
    t->err = definition_parse(value, STR("refund"), &t->problem, &t->def);
    json_free(value);
    assert_int_equal(t->err == ERR_OK, t->def != NULL);
    if (t->problem.faults.len > 0) {
        struct problem p;
        problem_init(&p);
        assert_int_equal(json_parse(buf_str(&t->problem.faults), &p, &t->faults), ERR_OK);
        problem_release(&p);
    }
}

static inline void try_text(struct parsed_definition *t, const char *text)
{
    try_json(t, json_of(text));
}

static inline void end(struct parsed_definition *t)
{
    definition_free(t->def);
    json_decref(t->faults);
    problem_release(&t->problem);
}

static inline bool has_fault(const struct parsed_definition *t, const char *path, const char *words)
{
    for (size_t i = 0; i < json_array_size(t->faults); i++) {
        const json_t *fault = json_array_get(t->faults, i);
        if (strcmp(json_string_value(json_object_get(fault, "path")), path) == 0 &&
            strstr(json_string_value(json_object_get(fault, "message")), words) != NULL)
            return true;
    }
    return false;
}

static inline void assert_fault(const struct parsed_definition *t, const char *path,
                                const char *words)
{
    if (!has_fault(t, path, words))
        fail_msg("no fault at %s with \"%s\" in %.*s", path, words,
                 STR_ARG(buf_str(&t->problem.faults)));
}

static inline void assert_valid(const struct parsed_definition *t)
{
    if (t->err != ERR_OK)
        fail_msg("%s %.*s", t->problem.detail, STR_ARG(buf_str(&t->problem.faults)));
    assert_int_equal(t->problem.faults.len, 0);
}

/* A definition, and the one fault it has. */
struct row {
    const char *text;
    const char *path;
    const char *words;
};

static inline void assert_each_has_its_one_fault(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct parsed_definition t;
        try_text(&t, rows[i].text);
        if (json_array_size(t.faults) != 1)
            fail_msg("not one fault: %s: %.*s", rows[i].text, STR_ARG(buf_str(&t.problem.faults)));
        assert_int_equal(t.err, ERR_DEFINITION_INVALID);
        assert_fault(&t, rows[i].path, rows[i].words);
        assert_string_equal(t.problem.detail, "The definition has 1 fault");
        end(&t);
    }
}

static inline void assert_each_is_valid(const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct parsed_definition t;
        try_text(&t, texts[i]);
        if (t.err != ERR_OK)
            fail_msg("%s: %.*s", texts[i], STR_ARG(buf_str(&t.problem.faults)));
        end(&t);
    }
}

#define A_TASK "{'name':'a','type':'task','handler':'h'}"
#define A_TASK_C "{'name':'c','type':'task','handler':'h'}"
/* A definition of one step with these members besides its name. */
#define STEP(members) "{'steps':[{'name':'a'," members "}]}"
#define TASK(members) STEP("'type':'task','handler':'h'," members)
#define HTTP(request) STEP("'type':'http','request':" request)
#define APPROVAL(members) STEP("'type':'approval','prompt':'p?'," members)
#define LIMITS(limits) "{'concurrency':" limits ",'steps':[" A_TASK "]}"
#define SCHEMA(schema) "{'input_schema':" schema ",'steps':[" A_TASK "]}"

#endif
