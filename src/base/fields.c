/* Reading a request's object field by field: bounds, types, and no unknown names. */
#include "base/fields.h"

#include "base/json/value.h"
#include "base/limits.h"
#include "base/suggest.h"

#include <stdio.h>

void fields_begin(struct fields *f, const struct json *object, struct problem *p)
{
    *f = (struct fields){.object = object, .problem = p, .err = ERR_OK};
    if (object != NULL && !json_is(object, JSON_KIND_OBJECT))
        f->err = problem_set(p, ERR_FIELD_INVALID, "The body must be a JSON object");
}

void fields_fault(struct fields *f, const char *name, const char *message)
{
    if (f->err != ERR_OK)
        return;
    f->err = problem_set(f->problem, ERR_FIELD_INVALID, "%s: %s", name, message);
}

void fields_default(struct fields *f, const char *name)
{
    if (f->err == ERR_OK && f->defaults != NULL)
        *f->defaults += json_mark_default(f->object, str_of(name));
}

/* Notes that the name is a known one. NULL when absent or after a fault. */
static const struct json *find(struct fields *f, const char *name)
{
    assert(f->seen_count < ARRAY_LEN(f->seen));
    f->seen[f->seen_count++] = name;
    return f->err == ERR_OK ? json_member(f->object, str_of(name)) : NULL;
}

/* As find(), where a request with null is the same as one without it. */
static const struct json *look_up_or_null(struct fields *f, const char *name)
{
    const struct json *value = find(f, name);
    if (!json_is(value, JSON_KIND_NULL))
        return value;
    fields_default(f, name);
    return NULL;
}

void fields_text(struct fields *f, const char *name, size_t len_max, struct str *ret)
{
    const struct json *value = look_up_or_null(f, name);
    if (value == NULL)
        return;
    char message[64];
    if (!json_is(value, JSON_KIND_TEXT)) {
        fields_fault(f, name, "must be text");
    } else if (json_text_of(value).len > len_max) {
        (void)snprintf(message, sizeof(message), "must have at most %zu bytes", len_max);
        fields_fault(f, name, message);
    } else {
        if (ret->ptr != NULL && str_eq(*ret, json_text_of(value)))
            fields_default(f, name);
        *ret = json_text_of(value);
    }
}

void fields_name(struct fields *f, const char *name, size_t len_max, struct str *ret)
{
    struct str text = *ret;
    fields_text(f, name, len_max, &text);
    if (f->err != ERR_OK || text.ptr == NULL)
        return;
    if (!str_is_name(text))
        fields_fault(f, name, "must be one or more letters, digits or any of _ - . :");
    else
        *ret = text;
}

void fields_int(struct fields *f, const char *name, int64_t min, int64_t max, int64_t *ret)
{
    const struct json *value = look_up_or_null(f, name);
    if (value == NULL)
        return;
    int64_t number = 0;
    if (!json_whole_of(value, &number) || number < min || number > max) {
        char message[96];
        (void)snprintf(message, sizeof(message), "must be a whole number from %lld to %lld",
                       (long long)min, (long long)max);
        fields_fault(f, name, message);
        return;
    }
    if (*ret == number)
        fields_default(f, name);
    *ret = number;
}

void fields_bool(struct fields *f, const char *name, bool *ret)
{
    const struct json *value = look_up_or_null(f, name);
    if (value == NULL)
        return;
    if (!json_is_bool(value))
        fields_fault(f, name, "must be true or false");
    else if (*ret == json_is(value, JSON_KIND_TRUE))
        fields_default(f, name);
    else
        *ret = json_is(value, JSON_KIND_TRUE);
}

void fields_any(struct fields *f, const char *name, const struct json **ret)
{
    *ret = find(f, name);
}

void fields_object(struct fields *f, const char *name, const struct json **ret)
{
    *ret = NULL;
    const struct json *value = look_up_or_null(f, name);
    if (value == NULL)
        return;
    if (!json_is(value, JSON_KIND_OBJECT))
        fields_fault(f, name, "must be an object");
    else
        *ret = value;
}

void fields_array(struct fields *f, const char *name, size_t count_max, const struct json **ret)
{
    *ret = NULL;
    const struct json *value = look_up_or_null(f, name);
    if (value == NULL)
        return;
    char message[64];
    if (!json_is(value, JSON_KIND_LIST)) {
        fields_fault(f, name, "must be an array");
    } else if (json_length(value) > count_max) {
        (void)snprintf(message, sizeof(message), "must have at most %zu elements", count_max);
        fields_fault(f, name, message);
    } else {
        *ret = value;
    }
}

void fields_require(struct fields *f, const char *name)
{
    size_t i = f->seen_count;
    while (i > 0 && strcmp(f->seen[i - 1], name) != 0)
        i--;
    assert(i > 0);
    f->required |= 1u << (i - 1);
}

static bool is_known(const struct fields *f, struct str name)
{
    for (size_t i = 0; i < f->seen_count; i++) {
        if (str_is(name, f->seen[i]))
            return true;
    }
    return false;
}

static void refuse_unknown(struct fields *f, struct str name)
{
    struct suggestion s = suggest_for(name);
    for (size_t i = 0; i < f->seen_count; i++)
        suggest_consider(&s, str_of(f->seen[i]));
    char room[SUGGEST_TEXT_MAX];
    f->err = problem_set(f->problem, ERR_FIELD_INVALID, "Unknown field \"%.64s\"%s", name.ptr,
                         suggest_text(&s, room));
}

static void check_unknown(struct fields *f)
{
    for (size_t i = 0; i < json_members(f->object) && f->err == ERR_OK; i++) {
        struct str name = json_name_at(f->object, i);
        if (!is_known(f, name))
            refuse_unknown(f, name);
    }
}

/* After unknown names: a required field is most often missing because its name is misspelled. */
static void check_required(struct fields *f)
{
    for (size_t i = 0; i < f->seen_count && f->err == ERR_OK; i++) {
        if ((f->required & 1u << i) == 0)
            continue;
        const struct json *value = json_member(f->object, str_of(f->seen[i]));
        if (value == NULL || json_is(value, JSON_KIND_NULL))
            fields_fault(f, f->seen[i], "is required");
    }
}

enum err fields_end(struct fields *f)
{
    if (f->err == ERR_OK && f->object != NULL)
        check_unknown(f);
    if (f->err == ERR_OK && f->required != 0)
        check_required(f);
    return f->err;
}
