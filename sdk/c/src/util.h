/* Small things that all parts need: growing texts, times, members of JSON objects. */
#ifndef PAWL_UTIL_H
#define PAWL_UTIL_H

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that grow, with a 0 behind them. `failed`: memory ran out, and what was added since is
 * missing. */
struct buffer {
    char *data;
    size_t size, capacity;
    bool failed;
};

void buffer_add(struct buffer *buffer, const char *data, size_t size);
void buffer_text(struct buffer *buffer, const char *text);
void buffer_free(struct buffer *buffer);

/* Like printf, into memory that the caller frees; NULL without memory. */
char *format(const char *text, ...) __attribute__((format(printf, 1, 2)));

/* Copies as much as fits, whole UTF-8 characters, with a 0 at the end. */
void copy_text(char *to, size_t capacity, const char *text);

/* RFC 3339 with milliseconds in UTC, and back; false if the text is no such time. */
#define TIME_SIZE 80
void time_text(int64_t unix_ms, char text[TIME_SIZE]);
bool time_parse(const char *text, int64_t *ret_unix_ms);

/* The text of a member, or "" if it is not a text. */
const char *member_text(const json_t *object, const char *name);

/* Sets a member if the text is not NULL. */
void set_text(json_t *object, const char *name, const char *text);

/* Sets a member if the value is neither NULL nor null; gives the value away in any case. */
void set_given(json_t *object, const char *name, json_t *value);

/* A JSON value as compact text, which the caller frees; NULL if it cannot be written. */
char *json_text(const json_t *value);

/* What json_vpack_ex makes of a format for an object; an empty object for a format that is NULL. On
 * a mistake NULL, and `problem` says which. */
json_t *pack_options(const char *options, va_list args, char *problem, size_t capacity);

#endif
