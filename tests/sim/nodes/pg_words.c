/* Statements of PostgreSQL in SQLite's words: parameters, casts, intervals, times, arrays. */
#include "sim/nodes/pg.h"

#include "base/buf.h"

#include <ctype.h>
#include <stdlib.h>

static bool at_word(struct str rest, const char *word)
{
    return str_starts_with(rest, str_of(word));
}

static size_t digits(struct str rest)
{
    size_t n = 0;
    while (n < rest.len && isdigit((unsigned char)rest.ptr[n]))
        n++;
    return n;
}

/* What stands at the beginning, in other words; how much of it is read. 0: none of these. */
static size_t put_word(struct buf *out, struct str rest)
{
    static const struct {
        const char *from, *to;
    } WORDS[] = {
        {"interval '1 ms'", "1"},
        {"interval '1 hour'", "3600000"},
        {"extract(epoch FROM ", "epoch("},
        {"FROM commits, fence($1, $2) xid WHERE", "FROM commits WHERE"},
        {" AS MATERIALIZED (", " AS ("},
        {"UPDATE shards s SET", "UPDATE shards AS s SET"},
        {"COLLATE \"C\"", ""},
        {"hashtext(session)::oid IN (SELECT objid FROM pg_locks WHERE locktype = 'advisory'"
         " AND classid = 1885435757 AND database ="
         " (SELECT oid FROM pg_database WHERE datname = current_database()))",
         "session_is_shown(session)"},
    };
    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++) {
        if (at_word(rest, WORDS[i].from)) {
            buf_put(out, str_of(WORDS[i].to));
            return strlen(WORDS[i].from);
        }
    }
    return 0;
}

/* "$3" is "?3", and without a cast; one to bool is a comparison. */
static size_t put_parameter(struct buf *out, struct str rest)
{
    struct str number = {rest.ptr + 1, digits((struct str){rest.ptr + 1, rest.len - 1})};
    struct str after = {number.ptr + number.len, rest.len - 1 - number.len};
    if (number.len == 0)
        return 0;
    if (at_word(after, "::bool"))
        buf_printf(out, "(?%.*s = 't')", STR_ARG(number));
    else
        buf_printf(out, "?%.*s", STR_ARG(number));
    return 1 + number.len;
}

static size_t cast_len(struct str rest)
{
    size_t n = 2;
    if (!at_word(rest, "::"))
        return 0;
    while (n < rest.len && (isalnum((unsigned char)rest.ptr[n]) || strchr("[]", rest.ptr[n])))
        n++;
    return n;
}

static size_t quoted_len(struct str rest)
{
    size_t n = 1;
    while (n < rest.len && rest.ptr[n] != '\'')
        n++;
    return n + 1;
}

/* "… SELECT u.p1, 0 FROM unnest(…) AS u (p1)" of one row. */
static void put_one_row(struct buf *out, struct str sql)
{
    const char *end = strstr(sql.ptr, " FROM unnest(");
    for (const char *at = sql.ptr; at < end; at++) {
        if (strncmp(at, "u.p", 3) == 0) {
            buf_put_char(out, '?');
            at += 2;
        } else {
            buf_put_char(out, *at);
        }
    }
}

char *pg_translate(const char *sql)
{
    struct buf out;
    struct str rest = str_of(sql);
    buf_init(&out, 1 << 20);
    if (strstr(sql, " FROM unnest(") != NULL) {
        put_one_row(&out, rest);
        rest.len = 0;
    }
    while (rest.len > 0) {
        size_t n = put_word(&out, rest);
        if (n == 0 && rest.ptr[0] == '$')
            n = put_parameter(&out, rest);
        if (n == 0)
            n = cast_len(rest);
        if (n == 0) {
            n = rest.ptr[0] == '\'' ? quoted_len(rest) : 1;
            buf_put(&out, (struct str){rest.ptr, n});
        }
        rest = (struct str){rest.ptr + n, rest.len - n};
    }
    assert(buf_ok(&out));
    char *text = strdup(buf_str(&out).ptr);
    buf_release(&out);
    assert(text != NULL);
    return text;
}
