/* How an answer is sent. Its body was written whole by the use case and is sent from there. */
#include "api/answer.h"

#include "api/caller.h"
#include "api/waiting.h"

#include <fcntl.h>
#include <unistd.h>

/* A path and the number of an update. */
#define LOCATION_ROOM(path) ((path).len + sizeof("/-9223372036854775808"))

enum err answer_reserve(struct call *c)
{
    if ((c->route->flags & ROUTE_ASKS) == 0)
        return ERR_OK;
    c->location = call_alloc(c, LOCATION_ROOM(c->req->path));
    return c->location != NULL ? ERR_OK : c->op.problem.err;
}

/* --- headers --- */

/* Every answer to a start has one: written by hand, it costs a sixth of snprintf(). Empty when
 * memory ran out. */
static struct str etag_of(struct call *c, int64_t version)
{
    char tag[24];
    char *at = tag + sizeof(tag);
    assert(version >= 0);
    *--at = '"';
    do {
        *--at = (char)('0' + version % 10);
        version /= 10;
    } while (version > 0);
    *--at = '"';
    return arena_str(&c->req->arena, (struct str){at, (size_t)(tag + sizeof(tag) - at)});
}

/* The same list from the next page on: every other parameter stays. */
static struct str next_link(struct call *c)
{
    struct buf link;
    buf_init(&link, 4 * KIB);
    buf_put_char(&link, '<');
    buf_put(&link, c->req->path);
    buf_put_char(&link, '?');
    struct str rest = c->req->query;
    while (rest.len > 0) {
        struct str part;
        (void)str_cut(rest, '&', &part, &rest);
        if (part.len > 0 && !str_starts_with(part, STR("cursor="))) {
            buf_put(&link, part);
            buf_put_char(&link, '&');
        }
    }
    /* Cursors are made of letters that need no encoding. */
    buf_printf(&link, "cursor=%s>; rel=\"next\"", c->op.answer.next_cursor);
    return arena_take(&c->req->arena, &link);
}

/* Where the result of an update will be: below the request's path, under the update's number. */
static struct str location_of(struct call *c)
{
    int64_t seq = c->op.answer.update_seq;
    if (seq == 0)
        return STR_NONE;
    int n = snprintf(c->location, LOCATION_ROOM(c->req->path), "%.*s/%lld", STR_ARG(c->req->path),
                     (long long)seq);
    return (struct str){c->location, (size_t)n};
}

/* --- the answer --- */

/* The answer is the path of a file that was made for this request alone. */
static void send_file(struct call *c)
{
    const char *path = c->op.answer.body.ptr;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    (void)unlink(path); /* it stays readable until it is sent */
    if (fd < 0) {
        (void)problem_set(&c->op.problem, ERR_STORE_FAILED, "The copy cannot be read");
        call_send_problem(c);
        return;
    }
    struct http_reply reply = call_reply(c, 200, STR("application/vnd.sqlite3"), STR_NONE);
    reply.file_fd = fd;
    http_send(c->req, &reply);
}

static void send_not_modified(struct call *c, struct str etag)
{
    struct http_reply reply = call_reply(c, 304, STR(""), STR(""));
    http_reply_add(&reply, "ETag", etag);
    http_send(c->req, &reply);
}

static void send_body(struct call *c, struct str etag)
{
    const struct answer *a = &c->op.answer;
    struct http_reply reply = call_reply(c, a->status, STR("application/json"), buf_str(&a->body));
    if (a->replayed || a->already_decided)
        http_reply_add(&reply, "Idempotent-Replayed", STR("true"));
    if (etag.len > 0)
        http_reply_add(&reply, "ETag", etag);
    if (c->set_cookie.ptr != NULL)
        http_reply_add(&reply, "Set-Cookie", c->set_cookie);
    if (a->next_cursor[0] != '\0')
        http_reply_add(&reply, "Link", next_link(c));
    if (a->status == 202 && (c->route->flags & ROUTE_ASKS) != 0)
        http_reply_add(&reply, "Location", location_of(c));
    http_send(c->req, &reply);
}

static void send_answer(struct call *c)
{
    if (c->op.err != ERR_OK) {
        call_send_problem(c);
        return;
    }
    if ((c->route->flags & ROUTE_FILE) != 0) {
        send_file(c);
        return;
    }
    int64_t version = c->op.answer.run_version;
    struct str etag = version > 0 ? etag_of(c, version) : STR_NONE;
    if (etag.len > 0 && call_tags_name(c->if_none_match, etag))
        send_not_modified(c, etag);
    else
        send_body(c, etag);
}

/* --- jobs that are handed out --- */

bool answer_is_awaited(const struct op *op)
{
    struct call *c = op->owner;
    return http_is_connected(c->req) && caller_key_holds(c);
}

void answer_disconnected(void *user)
{
    struct call *c = user;
    engine_caller_left(c->api->config.engine, &c->op);
}

static void answer_unsent(void *user)
{
    struct call *c = user;
    engine_give_back(c->api->config.engine, &c->op);
}

/* Jobs for a client that has gone, or whose key has, are given back unseen. */
void answer_done(struct op *op)
{
    struct call *c = op->owner;
    if (c->waits)
        waiting_leave(c->api->waiting, op->caller.tenant);
    bool revoked = op->wait_ms > 0 && !caller_key_holds(c);
    bool hands_out = op->err == ERR_OK && op->answer.handed.len > 0;
    bool lost = op->abandoned || (hands_out && (revoked || !http_is_connected(c->req)));
    if (lost)
        engine_give_back(c->api->config.engine, op);
    if (op->abandoned) {
        if (op->err == ERR_OK && (c->route->flags & ROUTE_FILE) != 0)
            (void)unlink(op->answer.body.ptr);
    } else if (revoked) { /* a change that it made while the key held stays */
        op->err = caller_revoked(c);
        send_answer(c);
    } else if (lost) {
        http_hang_up(c->req);
    } else {
        c->req->unsent = hands_out ? answer_unsent : NULL;
        send_answer(c);
    }
    http_request_drop(c->req);
}

/* The store still uses the op's memory: nothing of it may be touched here. */
void answer_timed_out(struct op *op)
{
    struct call *c = op->owner;
    struct problem p;
    problem_init(&p);
    if (op->idem.key.len > 0)
        (void)problem_set(&p, ERR_IDEM_IN_FLIGHT,
                          "The request is still being decided. Retry with the same key.");
    else
        (void)problem_set(&p, ERR_STORE_BUSY,
                          "Storage is too slow; the outcome is unknown. The change may be made "
                          "later.");
    call_send_other_problem(c, &p);
    problem_release(&p);
}
