/* Log lines with named fields. */
#include "base/log.h"

#include "base/json.h"

#include <unistd.h>

/* A message cut to its own bound fits into a line even if each byte needs six to escape it. */
enum { LOG_LINE_MAX = 8192, LOG_MESSAGE_MAX = 1024 };

static_assert(6 * LOG_MESSAGE_MAX + 128 <= LOG_LINE_MAX, "room for time and level too");

static enum log_format log_format = LOG_TEXT;
static enum log_level log_least = LOG_INFO;
static const struct env *log_env = &ENV_SYSTEM;

static const char *const LEVELS[] = {"debug", "info", "warn", "error"};

void log_setup(enum log_format format, enum log_level least, const struct env *env)
{
    log_format = format;
    log_least = least;
    log_env = env;
}

/* Fields may hold anything that came over the wire; a line holds UTF-8 only. */
static void put_quoted(struct buf *line, struct str text)
{
    if (str_is_utf8(text)) {
        json_put_text(line, text);
        return;
    }
    struct buf repaired;
    buf_init(&repaired, LOG_LINE_MAX);
    buf_put(&repaired, text);
    str_repair_utf8(repaired.ptr, repaired.len);
    json_put_text(line, buf_str(&repaired));
    if (!buf_ok(&repaired))
        line->failed = true;
    buf_release(&repaired);
}

static void put_json(struct buf *line, enum log_level level, struct str message,
                     const struct log_field *fields, size_t count)
{
    buf_put(line, STR("{\"time\":\""));
    buf_put_time(line, env_now_ms(log_env));
    buf_printf(line, "\",\"level\":\"%s\",\"message\":", LEVELS[level]);
    put_quoted(line, message);
    for (size_t i = 0; i < count; i++) {
        if (fields[i].name == NULL)
            continue;
        buf_put_char(line, ',');
        json_put_text(line, str_of(fields[i].name));
        buf_put_char(line, ':');
        if (fields[i].text.ptr != NULL)
            put_quoted(line, fields[i].text);
        else
            buf_put_i64(line, fields[i].number);
    }
    buf_put_char(line, '}');
}

static bool has_control_bytes(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c < ' ' || c == 127)
            return true;
    }
    return false;
}

static bool is_plain(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c <= ' ' || c == '"' || c == '=' || c >= 127)
            return false;
    }
    return text.len > 0;
}

static void put_text(struct buf *line, enum log_level level, struct str message,
                     const struct log_field *fields, size_t count)
{
    buf_put_time(line, env_now_ms(log_env));
    buf_printf(line, " %-5s ", LEVELS[level]);
    if (has_control_bytes(message) || !str_is_utf8(message))
        put_quoted(line, message);
    else
        buf_put(line, message);
    for (size_t i = 0; i < count; i++) {
        if (fields[i].name == NULL)
            continue;
        buf_printf(line, " %s=", fields[i].name);
        if (fields[i].text.ptr == NULL)
            buf_put_i64(line, fields[i].number);
        else if (is_plain(fields[i].text))
            buf_put(line, fields[i].text);
        else
            put_quoted(line, fields[i].text);
    }
}

static void put_line(struct buf *line, enum log_level level, struct str message,
                     const struct log_field *fields, size_t count)
{
    if (log_format == LOG_JSON)
        put_json(line, level, message, fields, count);
    else
        put_text(line, level, message, fields, count);
    buf_put_char(line, '\n');
}

void log_line(enum log_level level, const char *message, const struct log_field *fields,
              size_t count)
{
    if (level < log_least)
        return;
    struct buf line;
    buf_init(&line, LOG_LINE_MAX);
    put_line(&line, level, str_of(message), fields, count);
    if (!buf_ok(&line)) {
        /* Too long or out of memory: the message alone is worth more than nothing. */
        buf_clear(&line);
        struct str start = {message, MIN(strlen(message), (size_t)LOG_MESSAGE_MAX)};
        put_line(&line, level, start, NULL, 0);
    }
    if (buf_ok(&line)) {
        /* A failed write to standard error cannot be reported anywhere. */
        ssize_t ignored = write(STDERR_FILENO, line.ptr, line.len);
        (void)ignored;
    }
    buf_release(&line);
}
