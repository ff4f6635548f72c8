/* Connections that the server ends: clients that are slow by the bytes they move, and idle ones. */
#include "http/internal.h"

#include "base/log.h"

/* What a client that moves HTTP_RATE_MIN bytes a second keeps ahead of. */
static int64_t by_progress(const struct conn *c, int64_t grace_ms)
{
    return c->since_ms + grace_ms + (int64_t)(c->moved * 1000 / HTTP_RATE_MIN);
}

static int64_t deadline_of(const struct conn *c)
{
    switch ((enum conn_phase)c->phase) {
    case CONN_IDLE:
        return c->since_ms + HTTP_IDLE_TIMEOUT_S * 1000;
    case CONN_HEAD:
        return c->since_ms + HTTP_HEAD_TIMEOUT_MS;
    case CONN_BODY:
        return by_progress(c, HTTP_BODY_GRACE_MS);
    case CONN_REPLY:
        return by_progress(c, HTTP_STREAM_STALL_MS);
    case CONN_LINGER:
        return c->since_ms + HTTP_LINGER_MS;
    default:
        return INT64_MAX; /* the handler has time-outs of its own */
    }
}

static const char *reason_of(enum conn_phase phase)
{
    switch (phase) {
    case CONN_HEAD:
        return "slow_head";
    case CONN_BODY:
        return "slow_body";
    case CONN_REPLY:
        return "slow_reader";
    case CONN_LINGER:
        return "slow_close";
    default:
        return "idle";
    }
}

void deadlines_count(struct http_server *s, const char *reason)
{
    if (s->dropped != NULL)
        metric_add(s->dropped, str_of(reason), STR_NONE, 1);
    if (strcmp(reason, "idle") == 0)
        return; /* in the normal course of things */
    s->drops_unlogged++;
    if (s->now_ms < s->log_drops_at_ms)
        return;
    LOG(LOG_WARN, "dropped connections", LOG_N("count", s->drops_unlogged),
        LOG_Z("last_reason", reason));
    s->drops_unlogged = 0;
    s->log_drops_at_ms = s->now_ms + HTTP_DROPS_LOG_MS;
}

/* Those that have a deadline. */
static const enum conn_phase SWEPT[] = {CONN_IDLE, CONN_HEAD, CONN_BODY, CONN_REPLY, CONN_LINGER};

/* In the list of such a phase the one that entered it first is the first to be late. */
static bool is_in_order(enum conn_phase phase)
{
    return phase != CONN_BODY && phase != CONN_REPLY;
}

static void sweep_list(struct http_server *s, enum conn_phase phase)
{
    for (struct conn *c = s->lists[phase].first, *next; c != NULL; c = next) {
        next = c->next;
        if (s->now_ms >= deadline_of(c)) {
            deadlines_count(s, reason_of(phase));
            conn_close(c);
        } else if (is_in_order(phase)) {
            return;
        }
    }
}

void deadlines_sweep(struct http_server *s)
{
    if (s->now_ms < s->next_sweep_ms)
        return;
    s->next_sweep_ms = s->now_ms + HTTP_SWEEP_MS;
    for (size_t i = 0; i < ARRAY_LEN(SWEPT); i++)
        sweep_list(s, SWEPT[i]);
}

int deadlines_next_ms(const struct http_server *s)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < ARRAY_LEN(SWEPT); i++) {
        const struct conn *first = s->lists[SWEPT[i]].first;
        if (first != NULL)
            next = MIN(next, is_in_order(SWEPT[i]) ? deadline_of(first) : s->next_sweep_ms);
    }
    if (next == INT64_MAX)
        return -1;
    int64_t left = MAX(next, s->next_sweep_ms) - env_mono_ms(s->config.env);
    return (int)MAX(left, (int64_t)0);
}
