/* References inside a schema: `#`, or `#` and a JSON Pointer to another place where a schema
 * stands. */
#include "domain/schema/keyword.h"

#include "base/limits.h"

enum { REF_NAME_MAX = 256 };

/* --- what a reference points to --- */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The character at *at of a URI's fragment, which advances past it; 0 for a broken escape. */
static char next_unescaped(struct str text, size_t *at)
{
    char c = text.ptr[(*at)++];
    if (c != '%')
        return c;
    int high = *at < text.len ? hex_value(text.ptr[*at]) : -1;
    int low = *at + 1 < text.len ? hex_value(text.ptr[*at + 1]) : -1;
    *at += 2;
    if (high < 0 || low < 0)
        return '\0';
    return (char)(high << 4 | low);
}

/* Reads the name from *at up to the next /, unescaped. False when it cannot be one. */
static bool next_name(struct str pointer, size_t *at, char name[static REF_NAME_MAX + 1])
{
    size_t len = 0;
    while (*at < pointer.len && pointer.ptr[*at] != '/') {
        char c = next_unescaped(pointer, at);
        if (c == '~') {
            char which = *at < pointer.len ? next_unescaped(pointer, at) : '\0';
            c = which == '0' ? '~' : which == '1' ? '/' : '\0';
        }
        if (c == '\0' || len == REF_NAME_MAX)
            return false;
        name[len++] = c;
    }
    name[len] = '\0';
    return true;
}

static const struct json *element_named(const struct json *array, const char *name)
{
    int64_t index;
    bool canonical = name[0] != '0' || name[1] == '\0';
    if (!canonical || !str_to_i64(str_of(name), &index) || index < 0)
        return NULL;
    return json_element(array, (size_t)index);
}

/* One name further; *holds says what stands there. */
static const struct json *step_into(const struct json *at, const char *name, enum holds *holds)
{
    if (*holds == HOLDS_LIST || *holds == HOLDS_NAMED) {
        bool is_list = *holds == HOLDS_LIST;
        *holds = HOLDS_ONE;
        return is_list ? element_named(at, name) : json_member(at, str_of(name));
    }
    const struct keyword *word = schema_keyword(str_of(name));
    *holds = word != NULL ? word->holds : HOLDS_NOTHING;
    return *holds != HOLDS_NOTHING ? json_member(at, str_of(name)) : NULL;
}

const struct json *schema_ref_target(const struct json *root, const struct json *ref)
{
    struct str text = json_text_of(ref);
    if (text.len == 0 || text.ptr[0] != '#')
        return NULL;
    enum holds holds = HOLDS_ONE;
    const struct json *target = root;
    for (size_t at = 1; target != NULL && at < text.len;) {
        char name[REF_NAME_MAX + 1];
        if (text.ptr[at++] != '/' || !next_name(text, &at, name))
            return NULL;
        target = step_into(target, name, &holds);
    }
    return holds == HOLDS_ONE ? target : NULL;
}

/* --- references that lead back to themselves --- */

/* What is known about a schema; its address stands in the map of those that were followed. */
static char UNDERWAY;
static char COMES_TO_AN_END;

static const char *follow(struct reading *r, const struct json *schema, unsigned depth);

static const char *follow_keyword(struct reading *r, const struct keyword *word,
                                  const struct json *want, unsigned depth)
{
    const char *why = NULL;
    switch (word->holds) {
    case HOLDS_NOTHING:
        return follow(r, schema_ref_target(r->root, want), depth);
    case HOLDS_ONE:
        return follow(r, want, depth);
    case HOLDS_LIST:
        for (size_t i = 0; why == NULL && i < json_length(want); i++)
            why = follow(r, json_element(want, i), depth);
        return why;
    case HOLDS_NAMED:
        for (size_t i = 0; why == NULL && i < json_members(want); i++)
            why = follow(r, json_value_at(want, i), depth);
        return why;
    }
    assert(false);
    return NULL;
}

/* Follows the keywords that judge the same value. NULL when that comes to an end, else why not.
 * Recursion: SCHEMA_DEPTH_MAX deep. */
static const char *follow(struct reading *r, const struct json *schema, unsigned depth)
{
    if (!json_is(schema, JSON_KIND_OBJECT))
        return NULL;
    if (depth == SCHEMA_DEPTH_MAX)
        return "refers through too many schemas";
    void **known = schema_map_at(&r->followed, schema);
    if (known == NULL) {
        r->faults->out->failed = true;
        return NULL;
    }
    if (*known != NULL)
        return *known == &UNDERWAY ? "refers back to itself with the same value" : NULL;
    *known = &UNDERWAY;
    const char *why = NULL;
    for (size_t i = 0; i < json_members(schema); i++) {
        const struct keyword *word = schema_keyword(json_name_at(schema, i));
        if (why == NULL && word != NULL && word->in_place)
            why = follow_keyword(r, word, json_value_at(schema, i), depth + 1);
    }
    *known = &COMES_TO_AN_END;
    return why;
}

void keyword_check_ref(struct reading *r, const struct json *want)
{
    struct str text = json_text_of(want);
    if (!json_is(want, JSON_KIND_TEXT) || text.len == 0 || text.ptr[0] != '#')
        fault_list_add(r->faults,
                       "must begin with #: only references within this schema are supported");
    else if (text.len > 1 && text.ptr[1] != '/')
        fault_list_add(r->faults, "must be # or a JSON Pointer, such as #/$defs/name");
    else if (r->own_ids > 0)
        fault_list_add(r->faults, "is not supported inside a schema with its own $id");
    else if (schema_ref_target(r->root, want) == NULL)
        fault_list_add(r->faults, "does not point to a schema");
    else {
        const char *why = follow(r, schema_ref_target(r->root, want), 0);
        if (why != NULL)
            fault_list_add(r->faults, "%s", why);
    }
}

/* --- judging --- */

bool keyword_fits_ref(struct judge *j, const struct meeting *m)
{
    if (!judge_spend(j, judge_text_steps(m->want)))
        return false;
    const struct json *target = schema_ref_target(j->root, m->want);
    assert(target != NULL);
    return judge_fits(j, target, m->value);
}
