#include "util.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buffer_add(struct buffer *buffer, const char *data, size_t size)
{
    if (buffer->size + size + 1 > buffer->capacity) {
        size_t capacity = (buffer->size + size + 1) * 2;
        char *grown = realloc(buffer->data, capacity);
        if (!grown) {
            buffer->failed = true;
            return;
        }
        buffer->data = grown;
        buffer->capacity = capacity;
    }
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
    buffer->data[buffer->size] = 0;
}

void buffer_text(struct buffer *buffer, const char *text)
{
    buffer_add(buffer, text, strlen(text));
}

void buffer_free(struct buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct buffer){0};
}

char *format(const char *text, ...)
{
    va_list args;
    va_start(args, text);
    int size = vsnprintf(NULL, 0, text, args);
    va_end(args);
    char *made = size < 0 ? NULL : malloc((size_t)size + 1);
    if (made) {
        va_start(args, text);
        vsnprintf(made, (size_t)size + 1, text, args);
        va_end(args);
    }
    return made;
}

void copy_text(char *to, size_t capacity, const char *text)
{
    size_t size = strlen(text);
    if (size >= capacity) {
        size = capacity - 1;
        while (size > 0 && ((unsigned char)text[size] & 0xC0) == 0x80)
            size--;
    }
    memcpy(to, text, size);
    to[size] = 0;
}

/* Days since 1970-01-01 and back, in the proleptic Gregorian calendar (Howard Hinnant's
 * algorithms). */
static int64_t days_from_civil(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void civil_from_days(int64_t days, int64_t *year, int64_t *month, int64_t *day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t of_era = days - era * 146097;
    int64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * years + years / 4 - years / 100);
    int64_t shifted = (5 * of_year + 2) / 153;
    *day = of_year - (153 * shifted + 2) / 5 + 1;
    *month = shifted < 10 ? shifted + 3 : shifted - 9;
    *year = years + era * 400 + (*month <= 2);
}

#define DAY_MS 86400000

void time_text(int64_t unix_ms, char text[TIME_SIZE])
{
    int64_t days = unix_ms / DAY_MS - (unix_ms % DAY_MS < 0);
    int64_t rest = unix_ms - days * DAY_MS;
    int64_t year, month, day;
    civil_from_days(days, &year, &month, &day);
    snprintf(text, TIME_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", (int)year, (int)month,
             (int)day, (int)(rest / 3600000), (int)(rest / 60000 % 60), (int)(rest / 1000 % 60),
             (int)(rest % 1000));
}

/* "+02:00" in minutes. */
static bool parse_zone(const char *text, int *ret_minutes)
{
    int hours, minutes, end = 0;
    if (strcmp(text, "Z") == 0) {
        *ret_minutes = 0;
        return true;
    }
    if (sscanf(text, "%*1[+-]%2d:%2d%n", &hours, &minutes, &end) != 2 || text[end])
        return false;
    *ret_minutes = (text[0] == '-' ? -1 : 1) * (hours * 60 + minutes);
    return true;
}

bool time_parse(const char *text, int64_t *ret_unix_ms)
{
    int year, month, day, hour, minute, second, end = 0, zone;
    if (sscanf(text, "%4d-%2d-%2d%*1[Tt ]%2d:%2d:%2d%n", &year, &month, &day, &hour, &minute,
               &second, &end) != 6)
        return false;
    const char *rest = text + end;
    int millis = 0;
    if (*rest == '.') {
        int place = 100;
        for (rest++; *rest >= '0' && *rest <= '9'; rest++, place /= 10)
            millis += (*rest - '0') * place;
    }
    if (!parse_zone(rest, &zone))
        return false;
    int64_t minutes = (days_from_civil(year, month, day) * 24 + hour) * 60 + minute - zone;
    *ret_unix_ms = (minutes * 60 + second) * 1000 + millis;
    return true;
}

const char *member_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

void set_text(json_t *object, const char *name, const char *text)
{
    if (text)
        json_object_set_new(object, name, json_string(text));
}

void set_given(json_t *object, const char *name, json_t *value)
{
    if (value && !json_is_null(value))
        json_object_set(object, name, value);
    json_decref(value);
}

char *json_text(const json_t *value)
{
    return json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
}

json_t *pack_options(const char *options, va_list args, char *problem, size_t capacity)
{
    if (!options)
        return json_object();
    json_error_t wrong;
    json_t *packed = json_vpack_ex(&wrong, 0, options, args);
    if (json_is_object(packed))
        return packed;
    snprintf(problem, capacity, "The options are not an object: %s",
             packed ? "another value" : wrong.text);
    json_decref(packed);
    return NULL;
}
