/* An HTTP/1.1 reply as it arrives, in as many pieces as the network likes.
 *
 * The caller receives into bytes + have, adds to have, and calls reply_take until the reply is
 * whole. The body is counted and not kept, so it may be longer than the buffer.
 */
#ifndef BENCH_REPLY_H
#define BENCH_REPLY_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* memmem */
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define REPLY_MAX 16384     /* the head must fit */
#define REPLY_CODE_END 600u /* one past the last status there is */

struct reply {
    bool in_body; /* the head is parsed, body_left bytes are still to come */
    bool closes;  /* the server said that it will close the connection */
    unsigned code;
    unsigned long long body_left;
    size_t have;
    char bytes[REPLY_MAX];
};

static inline void reply_clear(struct reply *reply)
{
    reply->in_body = false;
    reply->closes = false;
    reply->have = 0;
}

static inline bool reply_field(const char *line, const char *end, const char *name,
                               const char **ret_value)
{
    size_t len = strlen(name);
    if ((size_t)(end - line) <= len || line[len] != ':' || strncasecmp(line, name, len) != 0)
        return false;
    for (line += len + 1; line < end && (*line == ' ' || *line == '\t');)
        line++;
    *ret_value = line;
    return true;
}

/* Reads the head, whose last line ends just before `end`; returns what is wrong with it or NULL. */
static inline const char *reply_head(struct reply *reply, const char *end, bool bodiless)
{
    const char *at = reply->bytes, *value = NULL;
    bool sized = false;
    if (end - at < 14 || memcmp(at, "HTTP/1.1 ", 9) != 0)
        return "the reply is not HTTP/1.1";
    reply->code = 0;
    for (int i = 9; i < 12; i++)
        reply->code = reply->code * 10 + (unsigned char)at[i] - '0';
    if (reply->code < 100 || reply->code >= REPLY_CODE_END)
        return "the reply's status is out of range";

    reply->body_left = 0;
    while ((at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        at++;
        if (reply_field(at, end, "Content-Length", &value)) {
            char *after = NULL; /* the line's CR stops strtoull inside the buffer */
            reply->body_left = strtoull(value, &after, 10);
            if (*value < '0' || *value > '9' || *after != '\r')
                return "the reply's Content-Length is malformed";
            sized = true;
        } else if (reply_field(at, end, "Transfer-Encoding", &value)) {
            return "the reply has a Transfer-Encoding, which is not supported";
        } else if (reply_field(at, end, "Connection", &value)) {
            reply->closes = strncasecmp(value, "close", 5) == 0;
        }
    }
    bodiless = bodiless || reply->code < 200 || reply->code == 204 || reply->code == 304;
    if (bodiless)
        reply->body_left = 0;
    return sized || bodiless ? NULL : "the reply has no Content-Length";
}

/* Takes what was received. True when the reply is whole; *ret_fault is set when it never will be.
 * A HEAD request's reply is bodiless whatever its head says. */
static inline bool reply_take(struct reply *reply, bool bodiless, const char **ret_fault)
{
    while (!reply->in_body) {
        char *blank = memmem(reply->bytes, reply->have, "\r\n\r\n", 4);
        if (blank == NULL) {
            if (reply->have == REPLY_MAX)
                *ret_fault = "the reply's head is too long";
            return false;
        }
        const char *fault = reply_head(reply, blank + 2, bodiless);
        if (fault != NULL) {
            *ret_fault = fault;
            return false;
        }
        size_t head = (size_t)(blank - reply->bytes) + 4;
        reply->have -= head;
        reply->in_body = reply->code >= 200;
        if (!reply->in_body) /* after an interim 1xx comes another head */
            memmove(reply->bytes, reply->bytes + head, reply->have);
    }
    if (reply->have > reply->body_left) {
        *ret_fault = "more came than the reply's Content-Length";
        return false;
    }
    reply->body_left -= reply->have;
    reply->have = 0;
    return reply->body_left == 0;
}

#endif
