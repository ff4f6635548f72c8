/* Values with ${…} in their texts, and behind an empty line the JSON that they see. What is filled
 * in is the same in any state; names of members and values without templates stay; `$${` and
 * nothing else escapes. */
#define _GNU_SOURCE /* memmem */
#include "domain/expr/expr.h"
#include "fuzz.h"

static enum err get(void *ctx, struct str root, struct str name, const struct json **ret)
{
    const struct json *value = ctx;
    if (name.ptr != NULL)
        value = json_member(value, name);
    *ret = str_is(root, "run") ? NULL : value;
    return ERR_OK;
}

static struct json *fill(struct expr *x, const struct json *template, const struct json *seen,
                         struct problem *p)
{
    struct expr_vars vars = {(void *)(uintptr_t)seen, get};
    struct json *value = NULL;
    enum err e = expr_fill(x, template, &vars, p, &value);
    assert((e == ERR_OK) == (value != NULL) && (e == ERR_OK || e == ERR_EXPRESSION));
    assert(e == ERR_OK || (p->detail[0] != '\0' && str_is_utf8(str_of(p->detail))));
    return value;
}

static size_t faults_of(struct expr *x, const struct json *template)
{
    struct buf out;
    struct fault_list faults;
    buf_init(&out, PROBLEM_FAULTS_MAX);
    buf_put_char(&out, '[');
    fault_list_init(&faults, &out);
    expr_template_check(x, template, &faults);
    buf_put_char(&out, ']');
    assert(buf_ok(&out));
    (void)fuzz_check_faults(buf_str(&out));
    size_t count = faults.count;
    fault_list_release(&faults);
    buf_release(&out);
    return count;
}

/* The same shape, except where a text was a template from beginning to end. */
static void check_shape(const struct json *template, const struct json *value)
{
    if (!expr_has_template(template)) {
        assert(json_same(template, value));
        return;
    }
    if (json_is(template, JSON_KIND_TEXT))
        return;
    assert(template->kind == value->kind && template->count == value->count);
    for (size_t i = 0; i < json_length(template); i++)
        check_shape(json_element(template, i), json_element(value, i));
    for (size_t i = 0; i < json_members(template); i++) {
        const struct json *member = json_member(value, json_name_at(template, i));
        assert(member != NULL);
        check_shape(json_value_at(template, i), member);
    }
}

/* Every `${` escaped: the text comes out as it was. */
static void check_escaped(struct expr *x, struct str text)
{
    struct buf escaped;
    buf_init(&escaped, 4 * text.len + 1);
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '$' && i + 1 < text.len && text.ptr[i + 1] == '{')
            buf_put_char(&escaped, '$');
        buf_put_char(&escaped, text.ptr[i]);
    }
    const struct json template = json_text_value(escaped.len > 0 ? buf_str(&escaped) : STR(""));
    if (memmem(text.ptr, text.len, "$${", 3) == NULL) {
        struct problem p;
        problem_init(&p);
        struct json *value = fill(x, &template, NULL, &p);
        assert(value != NULL && str_eq(json_text_of(value), text));
        json_free(value);
        problem_release(&p);
    }
    buf_release(&escaped);
}

static void check(struct expr *x, const struct json *template, const struct json *seen)
{
    struct problem p, q;
    problem_init(&p);
    problem_init(&q);
    size_t faults = faults_of(x, template);
    struct json *value = fill(x, template, seen, &p);
    assert(faults == 0 || value == NULL);
    if (value != NULL) {
        check_shape(template, value);
        struct expr *fresh = expr_new();
        struct json *again = fill(fresh, template, seen, &q);
        assert(again != NULL && json_same(value, again));
        json_free(again);
        expr_free(fresh);
    }
    json_free(value);
    problem_release(&q);
    problem_release(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = fuzz_text(data, size);
    const char *gap = size > 0 ? memmem(text.ptr, text.len, "\n\n", 2) : NULL;
    struct str first = {text.ptr, gap != NULL ? (size_t)(gap - text.ptr) : text.len};
    static const struct json NOTHING = {.kind = JSON_KIND_NULL};
    const struct json as_text = json_text_value(first.len > 0 ? first : STR(""));
    struct json *seen = NULL;
    if (gap != NULL)
        seen = fuzz_read((struct str){gap + 2, text.len - first.len - 2});
    struct json *template = fuzz_read(first);
    struct expr *x = expr_new();
    assert(x != NULL);
    if (template != NULL || str_is_utf8(first)) /* what is no JSON is one text */
        check(x, template != NULL ? template : &as_text, seen != NULL ? seen : &NOTHING);
    if (str_is_utf8(first))
        check_escaped(x, first);
    expr_free(x);
    json_free(template);
    json_free(seen);
    return 0;
}
