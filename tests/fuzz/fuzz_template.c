/* Values with ${…} in their texts, and behind an empty line the JSON that they see. What is filled
 * in is the same in any state; names of members and values without templates stay; `$${` and
 * nothing else escapes. */
#define _GNU_SOURCE /* memmem */
#include "domain/expr/expr.h"
#include "fuzz.h"

static enum err get(void *ctx, struct str root, struct str name, const json_t **ret)
{
    const json_t *value = ctx;
    if (name.ptr != NULL)
        value = json_object_getn(value, name.ptr, name.len);
    *ret = str_is(root, "run") ? NULL : value;
    return ERR_OK;
}

static json_t *fill(struct expr *x, const json_t *template, json_t *seen, struct problem *p)
{
    struct expr_vars vars = {seen, get};
    json_t *value = NULL;
    enum err e = expr_fill(x, template, &vars, p, &value);
    assert((e == ERR_OK) == (value != NULL) && (e == ERR_OK || e == ERR_EXPRESSION));
    assert(e == ERR_OK || (p->detail[0] != '\0' && str_is_utf8(str_of(p->detail))));
    return value;
}

static size_t faults_of(struct expr *x, const json_t *template)
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
static void check_shape(const json_t *template, const json_t *value)
{
    json_t *t = (json_t *)(uintptr_t) template;
    if (!expr_has_template(template)) {
        assert(json_equal(template, value));
        return;
    }
    if (json_is_string(t))
        return;
    assert(json_typeof(t) == json_typeof(value));
    assert(json_array_size(t) == json_array_size(value));
    assert(json_object_size(t) == json_object_size(value));
    for (size_t i = 0; i < json_array_size(t); i++)
        check_shape(json_array_get(t, i), json_array_get(value, i));
    for (void *it = json_object_iter(t); it != NULL; it = json_object_iter_next(t, it)) {
        const json_t *member = json_object_get(value, json_object_iter_key(it));
        assert(member != NULL);
        check_shape(json_object_iter_value(it), member);
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
    json_t *template = json_stringn(escaped.ptr != NULL ? escaped.ptr : "", escaped.len);
    if (template != NULL && memmem(text.ptr, text.len, "$${", 3) == NULL) {
        struct problem p;
        problem_init(&p);
        json_t *value = fill(x, template, NULL, &p);
        assert(value != NULL && str_eq(json_str(value), text));
        json_decref(value);
        problem_release(&p);
    }
    json_decref(template);
    buf_release(&escaped);
}

static void check(struct expr *x, const json_t *template, json_t *seen)
{
    struct problem p, q;
    problem_init(&p);
    problem_init(&q);
    size_t faults = faults_of(x, template);
    json_t *value = fill(x, template, seen, &p);
    assert(faults == 0 || value == NULL);
    if (value != NULL) {
        check_shape(template, value);
        struct expr *fresh = expr_new();
        json_t *again = fill(fresh, template, seen, &q);
        assert(again != NULL && json_equal(value, again));
        json_decref(again);
        expr_free(fresh);
    }
    json_decref(value);
    problem_release(&q);
    problem_release(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = fuzz_text(data, size);
    const char *gap = size > 0 ? memmem(text.ptr, text.len, "\n\n", 2) : NULL;
    struct str first = {text.ptr, gap != NULL ? (size_t)(gap - text.ptr) : text.len};
    json_t *seen = NULL;
    if (gap != NULL)
        seen = fuzz_parse((struct str){gap + 2, text.len - first.len - 2});
    json_t *template = fuzz_parse(first);
    if (template == NULL) /* then it is one text */
        template = json_stringn(first.len > 0 ? first.ptr : "", first.len);
    struct expr *x = expr_new();
    assert(x != NULL);
    if (template != NULL)
        check(x, template, seen != NULL ? seen : json_null());
    if (str_is_utf8(first))
        check_escaped(x, first);
    expr_free(x);
    json_decref(template);
    json_decref(seen);
    return 0;
}
