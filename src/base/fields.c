/* Reading a request's object field by field: bounds, types, and no unknown names. */
#include "base/json.h"
#include "base/limits.h"
#include "base/suggest.h"

#include <stdio.h>

void fields_begin(struct fields *f, const json_t *object, struct problem *p)
{
    *f = (struct fields){.object = object, .problem = p, .err = ERR_OK};
    if (object != NULL && !json_is_object(object))
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
    if (f->err != ERR_OK || f->defaults == NULL || f->object == NULL)
        return;
    if (!json_defaults_add(f->defaults, f->object, name))
        f->err = problem_set(f->problem, ERR_NO_MEMORY, "No memory for the request");
}

/* Notes that the name is a known one. NULL when absent or after a fault. */
static const json_t *find(struct fields *f, const char *name)
{
    assert(f->seen_count < ARRAY_LEN(f->seen));
    f->seen[f->seen_count++] = name;
    return f->err == ERR_OK ? json_object_get(f->object, name) : NULL;
}

/* As find(), where a request with null is the same as one without it. */
static const json_t *look_up_or_null(struct fields *f, const char *name)
{
    const json_t *value = find(f, name);
    if (!json_is_null(value))
        return value;
    fields_default(f, name);
    return NULL;
}

void fields_text(struct fields *f, const char *name, size_t len_max, struct str *ret)
{
    const json_t *value = look_up_or_null(f, name);
    if (value == NULL)
        return;
    char message[64];
    if (!json_is_string(value)) {
        fields_fault(f, name, "must be text");
    } else if (json_string_length(value) > len_max) {
        (void)snprintf(message, sizeof(message), "must have at most %zu bytes", len_max);
        fields_fault(f, name, message);
    } else {
        if (ret->ptr != NULL && str_eq(*ret, json_str(value)))
            fields_default(f, name);
        *ret = json_str(value);
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
    const json_t *value = look_up_or_null(f, name);
    if (value == NULL)
        return;
    int64_t number = 0;
    if (!json_whole(value, &number) || number < min || number > max) {
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
    const json_t *value = look_up_or_null(f, name);
    if (value == NULL)
        return;
    if (!json_is_boolean(value))
        fields_fault(f, name, "must be true or false");
    else if (*ret == json_is_true(value))
        fields_default(f, name);
    else
        *ret = json_is_true(value);
}

void fields_any(struct fields *f, const char *name, const json_t **ret)
{
    *ret = find(f, name);
}

void fields_object(struct fields *f, const char *name, const json_t **ret)
{
    *ret = NULL;
    const json_t *value = look_up_or_null(f, name);
    if (value == NULL)
        return;
    if (!json_is_object(value))
        fields_fault(f, name, "must be an object");
    else
        *ret = value;
}

void fields_array(struct fields *f, const char *name, size_t count_max, const json_t **ret)
{
    *ret = NULL;
    const json_t *value = look_up_or_null(f, name);
    if (value == NULL)
        return;
    char message[64];
    if (!json_is_array(value)) {
        fields_fault(f, name, "must be an array");
    } else if (json_array_size(value) > count_max) {
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

static bool is_known(const struct fields *f, const char *name)
{
    for (size_t i = 0; i < f->seen_count; i++) {
        if (strcmp(f->seen[i], name) == 0)
            return true;
    }
    return false;
}

static void refuse_unknown(struct fields *f, const char *name)
{
    struct suggestion s = suggest_for(str_of(name));
    for (size_t i = 0; i < f->seen_count; i++)
        suggest_consider(&s, str_of(f->seen[i]));
    char room[SUGGEST_TEXT_MAX];
    f->err = problem_set(f->problem, ERR_FIELD_INVALID, "Unknown field \"%.64s\"%s", name,
                         suggest_text(&s, room));
}

static void check_unknown(struct fields *f)
{
    json_t *o = (json_t *)(uintptr_t)f->object;
    void *it = json_object_iter(o);
    while (it != NULL && f->err == ERR_OK) {
        const char *name = json_object_iter_key(it);
        if (!is_known(f, name))
            refuse_unknown(f, name);
        it = json_object_iter_next(o, it);
    }
}

/* After unknown names: a required field is most often missing because its name is misspelled. */
static void check_required(struct fields *f)
{
    for (size_t i = 0; i < f->seen_count && f->err == ERR_OK; i++) {
        if ((f->required & 1u << i) == 0)
            continue;
        const json_t *value = f->object != NULL ? json_object_get(f->object, f->seen[i]) : NULL;
        if (value == NULL || json_is_null(value))
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
