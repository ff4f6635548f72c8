/* A JSON value as the reader (read.h) leaves it.
 *
 * A value is a node of 16 bytes. The elements of a list lie side by side in memory, and so do the
 * names and values of an object, in the order of the text: the nth is found without a search.
 * Behind the members of an object stands their order by name, which the reader needs to find
 * duplicates, and which serves look-ups and the canonical form. Nodes and the texts in them live as
 * long as their document (json_free). Nothing here fails; NULL stands for an absent value
 * everywhere. */
#ifndef PAWL_BASE_JSON_VALUE_H
#define PAWL_BASE_JSON_VALUE_H

#include "base/str.h"

enum json_kind {
    JSON_KIND_NULL,
    JSON_KIND_FALSE,
    JSON_KIND_TRUE,
    JSON_KIND_INTEGER,
    JSON_KIND_REAL,
    JSON_KIND_TEXT,
    JSON_KIND_LIST,
    JSON_KIND_OBJECT,
};

/* Read it through the functions below. */
struct json {
    union {
        int64_t integer;
        double real;
        const char *text;         /* NUL-terminated, and unless it was kept, without a NUL in it */
        const struct json *items; /* elements, or names and values in turn */
    };
    uint32_t count;  /* bytes, elements or members */
    uint8_t kind;    /* enum json_kind */
    bool is_plain;   /* a text in which nothing has to be escaped; another value that was written as
                        json_write_plain() does it, as far as the reader knows */
    bool is_default; /* a name: see json_mark_default() */
};

static inline bool json_is(const struct json *value, enum json_kind kind)
{
    return value != NULL && value->kind == kind;
}

static inline bool json_is_bool(const struct json *value)
{
    return json_is(value, JSON_KIND_TRUE) || json_is(value, JSON_KIND_FALSE);
}

static inline bool json_is_numeric(const struct json *value)
{
    return json_is(value, JSON_KIND_INTEGER) || json_is(value, JSON_KIND_REAL);
}

/* Of a number: the nearest double. */
static inline double json_double_of(const struct json *number)
{
    assert(json_is_numeric(number));
    return number->kind == JSON_KIND_INTEGER ? (double)number->integer : number->real;
}

/* STR_NONE when it is no text. */
static inline struct str json_text_of(const struct json *value)
{
    return json_is(value, JSON_KIND_TEXT) ? (struct str){value->text, value->count} : STR_NONE;
}

/* A text by itself, which it borrows. */
static inline struct json json_text_value(struct str text)
{
    assert(text.ptr != NULL && text.len <= UINT32_MAX);
    return (struct json){.kind = JSON_KIND_TEXT, .text = text.ptr, .count = (uint32_t)text.len};
}

/* True, and *ret, when it is a whole number, however it was written (1, 1.0, 1e0). */
bool json_whole_of(const struct json *value, int64_t *ret);

/* Of a list: how many elements, and the one at a place; 0 and NULL when it is no list or has no
 * such place. */
static inline size_t json_length(const struct json *list)
{
    return json_is(list, JSON_KIND_LIST) ? list->count : 0;
}

static inline const struct json *json_element(const struct json *list, size_t place)
{
    return place < json_length(list) ? &list->items[place] : NULL;
}

/* Of an object: how many members, and name and value of the one at a place, in the order of the
 * text. The place must be there. */
static inline size_t json_members(const struct json *object)
{
    return object != NULL && json_is(object, JSON_KIND_OBJECT) ? object->count : 0;
}

static inline struct str json_name_at(const struct json *object, size_t place)
{
    assert(place < json_members(object));
    return json_text_of(&object->items[2 * place]);
}

static inline const struct json *json_value_at(const struct json *object, size_t place)
{
    assert(place < json_members(object));
    return &object->items[2 * place + 1];
}

/* The places of an object's members, sorted by name as RFC 8785 has it: by UTF-16 code units. */
static inline const uint32_t *json_order(const struct json *object)
{
    return (const uint32_t *)(const void *)(object->items + 2 * (size_t)object->count);
}

/* The member of that name; NULL when there is none, or it is no object. */
const struct json *json_member(const struct json *object, struct str name);

/* The same value: the order of members does not count; 1 and 1.0 differ. */
bool json_same(const struct json *a, const struct json *b);

/* Notes that a member says no more than its absence would: the canonical form can leave such
 * members out (write.h). Only the owner of the document may do so, and nothing else of a value ever
 * changes. False when the member is absent or was noted before. */
bool json_mark_default(const struct json *object, struct str name);

/* For the reader: sorts the places 0…count-1 of `members` (names and values in turn) into `order`.
 * `scratch` has room for `count` places. Returns a name that stands there twice, or NULL. */
const struct json *json_order_make(const struct json *members, uint32_t count, uint32_t *order,
                                   uint32_t *scratch);

#endif
