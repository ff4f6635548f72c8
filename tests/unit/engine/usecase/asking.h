/* One use case at a time: its input goes in, its answer comes back. */
#ifndef PAWL_TESTS_ENGINE_USECASE_ASKING_H
#define PAWL_TESTS_ENGINE_USECASE_ASKING_H

#include "engine/actions.h"
#include "engine/entity_actions.h"

struct asked {
    enum err err;
    json_t *body; /* NULL after an error */
    char next_cursor[CURSOR_MAX];
    struct uuid run_id;
};

static inline void asked_release(struct asked *a)
{
    json_decref(a->body);
    a->body = NULL;
}

/* As somebody of `tenant`, which is created when `creates` is set. */
static inline struct asked ask_as(struct fixture *fixture, const char *tenant, bool creates,
                                  const struct use_case *use_case, const void *input)
{
    struct asked a = {.err = ERR_OK};
    struct call c;
    call_init(&c, fixture, use_case);
    c.op.caller.tenant = str_of(tenant);
    c.op.caller.creates_tenant = creates;
    c.op.input = input;
    a.err = perform(&c);
    if (a.err == ERR_OK && c.op.answer.body.len > 0 && c.op.answer.body.ptr[0] == '{')
        a.body = json_loadb(c.op.answer.body.ptr, c.op.answer.body.len,
                            JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY, NULL);
    a.run_id = c.op.answer.run_id;
    memcpy(a.next_cursor, c.op.answer.next_cursor, sizeof(a.next_cursor));
    call_release(&c);
    return a;
}

/* What it answers; the caller owns it. */
static inline json_t *answer_of(struct fixture *fixture, const struct use_case *use_case,
                                const void *input)
{
    struct asked a = ask_as(fixture, "acme", true, use_case, input);
    if (a.err != ERR_OK)
        fail_msg("%s: %s", use_case->name, err_code(a.err));
    assert_non_null(a.body);
    return a.body;
}

static inline void must_do(struct fixture *fixture, const struct use_case *use_case,
                           const void *input)
{
    json_decref(answer_of(fixture, use_case, input));
}

static inline enum err error_of(struct fixture *fixture, const struct use_case *use_case,
                                const void *input)
{
    struct asked a = ask_as(fixture, "acme", true, use_case, input);
    asked_release(&a);
    return a.err;
}

#define assert_refuses(fixture, use_case, input, code)                                     \
    do {                                                                                   \
        enum err refused_ = error_of((fixture), (use_case), (input));                      \
        if (refused_ != (code))                                                            \
            fail_msg("%s: %s, wanted %s at line %d", (use_case)->name, err_code(refused_), \
                     err_code(code), __LINE__);                                            \
    } while (0)

/* A number or text of an answer, then drops the answer. */
static inline int64_t number_in(json_t *owned, const char *member)
{
    int64_t number = json_integer_value(json_object_get(owned, member));
    json_decref(owned);
    return number;
}

#define assert_text_in(owned, member, wanted)                                            \
    do {                                                                                 \
        json_t *body_ = (owned);                                                         \
        const char *text_ = json_string_value(json_object_get(body_, (member)));         \
        if (text_ == NULL || strcmp(text_, (wanted)) != 0)                               \
            fail_msg("%s is %s, wanted %s", (member), text_ != NULL ? text_ : "no text", \
                     (wanted));                                                          \
        json_decref(body_);                                                              \
    } while (0)

static inline struct uuid id_in(const json_t *object, const char *member)
{
    struct uuid id;
    assert_true(uuid_parse(json_str(json_object_get(object, member)), &id));
    return id;
}

static inline size_t items_in(const json_t *page)
{
    return json_array_size(json_object_get(page, "items"));
}

#endif
