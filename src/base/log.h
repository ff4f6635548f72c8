/* Log lines with named fields, as text for people or JSON for collectors, on standard error.
 * One line per call, written with one system call, from any thread. */
#ifndef PAWL_BASE_LOG_H
#define PAWL_BASE_LOG_H

#include "base/env.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_TEXT, LOG_JSON };

struct log_field {
    const char *name;
    struct str text; /* used when ptr is not NULL, the number otherwise */
    int64_t number;
};

#define LOG_S(name, value) ((struct log_field){(name), (value), 0})
#define LOG_Z(name, value) ((struct log_field){(name), str_of(value), 0})
#define LOG_N(name, value) ((struct log_field){(name), STR_NONE, (int64_t)(value)})

/* Before any thread is started. */
void log_setup(enum log_format format, enum log_level least, const struct env *env);

void log_line(enum log_level level, const char *message, const struct log_field *fields,
              size_t count);

/* LOG(LOG_INFO, "listening", LOG_N("port", port)); the fields may be left out. */
#define LOG(level, message, ...)                                                                  \
    log_line((level), (message), (const struct log_field[]){{NULL, {NULL, 0}, 0}, ##__VA_ARGS__}, \
             ARRAY_LEN(((const struct log_field[]){{NULL, {NULL, 0}, 0}, ##__VA_ARGS__})))

#endif
