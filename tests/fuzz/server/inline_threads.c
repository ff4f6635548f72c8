/* The readers, the body thread and the makers of outgoing calls, on the thread of the loop. */
#include "inline_threads.h"

#include "base/limits.h"
#include "bus/http_caller.h"
#include "runtime/body_thread.h"
#include "runtime/publish.h"
#include "runtime/readers.h"

/* --- readers: one connection --- */

struct readers {
    const struct env *env;
    int event_fd;
    struct db *db;
    struct read_tx tx;
    struct op *done_first, **done_last;
};

enum err readers_start(const struct readers_config *config, struct problem *p, struct readers **ret)
{
    struct readers *r = calloc(1, sizeof(*r));
    assert(r != NULL);
    *r = (struct readers){.env = config->env, .event_fd = config->event_fd};
    r->done_last = &r->done_first;
    struct db_config store = {.url = config->store_url, .access = DB_READER, .env = config->env};
    enum err e = db_open(&store, p, &r->db);
    if (e == ERR_OK)
        e = read_tx_init(&r->tx, r->db);
    r->tx.polls = config->polls;
    r->tx.minutes = config->minutes;
    if (e != ERR_OK)
        readers_free(r);
    else
        *ret = r;
    return e;
}

void readers_set_keys(struct readers *r, struct idem_keys *keys)
{
    r->tx.known_keys = keys;
}

void readers_stop(struct readers *r)
{
    (void)r;
}

void readers_free(struct readers *r)
{
    if (r == NULL)
        return;
    read_tx_release(&r->tx);
    db_close(r->db);
    free(r);
}

static enum err read_snapshot(struct readers *r, struct op *op)
{
    enum err e = db_snapshot_begin(r->db, READ_MS_MAX);
    if (e != ERR_OK)
        return e;
    read_tx_start(&r->tx, env_now_ms(r->env));
    e = op->use_case->read(op, &r->tx);
    db_snapshot_end(r->db);
    read_tx_clear(&r->tx);
    return e;
}

void readers_push(struct readers *r, struct op *op)
{
    op_clear_result(op);
    enum err e = read_snapshot(r, op);
    if (e == ERR_OK && !buf_ok(&op->answer.body))
        e = problem_set(&op->problem, ERR_NO_MEMORY, "The answer is too large");
    if (e != ERR_OK && op->problem.err == ERR_OK)
        (void)problem_set(&op->problem, e, "The store could not be read");
    op->err = e;
    op->seen = 0; /* the writer syncs before it returns */
    op->next = NULL;
    *r->done_last = op;
    r->done_last = &op->next;
    wake_loop(r->event_fd);
}

struct op *readers_collect(struct readers *r)
{
    struct op *first = r->done_first;
    r->done_first = NULL;
    r->done_last = &r->done_first;
    return first;
}

/* --- the body thread --- */

struct body_thread {
    int event_fd;
    struct body_task *done_first, **done_last;
};

enum err body_thread_start(int event_fd, struct problem *p, struct body_thread **ret)
{
    (void)p;
    struct body_thread *t = calloc(1, sizeof(*t));
    assert(t != NULL);
    *t = (struct body_thread){.event_fd = event_fd};
    t->done_last = &t->done_first;
    *ret = t;
    return ERR_OK;
}

void body_thread_free(struct body_thread *t)
{
    free(t);
}

bool body_thread_push(struct body_thread *t, struct body_task *task)
{
    bool is_collected = task->done != NULL; /* run() frees the others */
    task->run(task);
    if (is_collected) {
        task->next = NULL;
        *t->done_last = task;
        t->done_last = &task->next;
        wake_loop(t->event_fd);
    }
    return true;
}

struct body_task *body_thread_collect(struct body_thread *t)
{
    struct body_task *first = t->done_first;
    t->done_first = NULL;
    t->done_last = &t->done_first;
    return first;
}

/* --- outgoing calls --- */

void (*inline_receiver)(struct http_call *call);

struct http_caller {
    struct http_caller_config config;
    struct http_call *done_first, **done_last;
};

struct http_caller *http_caller_new(const struct http_caller_config *config)
{
    struct http_caller *c = calloc(1, sizeof(*c));
    assert(c != NULL);
    c->config = *config;
    c->done_last = &c->done_first;
    return c;
}

void http_caller_free(struct http_caller *c)
{
    if (c == NULL)
        return;
    while (c->done_first != NULL) {
        struct http_call *call = c->done_first;
        c->done_first = call->next;
        http_call_free(call);
    }
    free(c);
}

bool http_caller_submit(struct http_caller *c, struct http_call *call)
{
    if (inline_receiver != NULL) {
        inline_receiver(call);
    } else {
        call->end = CALL_ANSWERED;
        call->status = 200;
        buf_put(&call->body, STR("{\"ok\":true}"));
    }
    if (c->config.over != NULL)
        c->config.over(call);
    call->next = NULL;
    *c->done_last = call;
    c->done_last = &call->next;
    wake_loop(c->config.event_fd);
    return true;
}

struct http_call *http_caller_collect(struct http_caller *c)
{
    struct http_call *first = c->done_first;
    c->done_first = NULL;
    c->done_last = &c->done_first;
    return first;
}

void http_caller_abort(struct http_caller *c)
{
    (void)c;
}
