/* Time zones made for a test: files written byte by byte, and rules. */
#ifndef PAWL_TESTS_ZONE_SUPPORT_H
#define PAWL_TESTS_ZONE_SUPPORT_H

#include "base/support.h"

#include "base/limits.h"
#include "base/zonefile.h"
#include "domain/calendar/zone.h"

/* --- zones made for a test --- */

struct setup {
    struct arena arena;
    struct problem problem;
    struct zone zone;
};

static inline void begin(struct setup *s)
{
    arena_init(&s->arena, MIB);
    problem_init(&s->problem);
    s->zone = (struct zone){.first_offset_s = 12345};
}

static inline void end(struct setup *s)
{
    arena_release(&s->arena);
    problem_release(&s->problem);
}

static inline void put_number(struct buf *b, int64_t value, size_t len)
{
    for (size_t i = len; i > 0; i--)
        buf_put_char(b, (char)((uint64_t)value >> (8 * (i - 1))));
}

struct file {
    char version;
    uint32_t ut_count;
    uint32_t std_count;
    uint32_t leap_count;
    uint32_t time_count;
    uint32_t type_count;
    uint32_t char_count;
    const int64_t *times;
    const unsigned char *indexes;
    const int32_t *offsets; /* of the types */
    int is_dst;
    int name;
    const char *footer; /* with its newlines */
};

static inline void put_head(struct buf *b, const struct file *f, bool empty)
{
    static const char ZEROS[15];
    buf_put(b, STR("TZif"));
    buf_put_char(b, f->version);
    buf_put_bytes(b, ZEROS, sizeof(ZEROS));
    const uint32_t counts[] = {f->ut_count,   f->std_count,  f->leap_count,
                               f->time_count, f->type_count, f->char_count};
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        put_number(b, empty ? 0 : counts[i], 4);
}

static inline struct buf written(const struct file *f)
{
    struct buf b;
    buf_init(&b, MIB);
    size_t time_len = f->version == '\0' ? 4 : 8;
    if (f->version != '\0')
        put_head(&b, f, true);
    put_head(&b, f, false);
    for (size_t i = 0; i < f->time_count; i++)
        put_number(&b, f->times[i], time_len);
    for (size_t i = 0; i < f->time_count; i++)
        buf_put_char(&b, (char)f->indexes[i]);
    for (size_t i = 0; i < f->type_count; i++) {
        put_number(&b, f->offsets[i], 4);
        buf_put_char(&b, (char)f->is_dst);
        buf_put_char(&b, (char)f->name);
    }
    size_t rest = f->char_count + f->leap_count * (time_len + 4) + f->std_count + f->ut_count;
    for (size_t i = 0; i < rest; i++)
        buf_put_char(&b, '\0');
    if (f->footer != NULL)
        buf_put(&b, str_of(f->footer));
    assert_true(buf_ok(&b));
    return b;
}

static inline enum err parse_file(struct setup *s, const struct file *f)
{
    struct buf b = written(f);
    /* A copy of just its size, so that a sanitizer sees a read past its end. */
    char *exact = malloc(b.len);
    assert_non_null(exact);
    memcpy(exact, b.ptr, b.len);
    enum err e = zone_parse((struct str){exact, b.len}, &s->arena, &s->problem, &s->zone);
    free(exact);
    buf_release(&b);
    return e;
}

#endif
