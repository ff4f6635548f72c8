/* Worker queues and workers, as a tenant sees them. A worker for all tenants is shown to those that
 * have jobs in the queues it polls, and of its work only what it does for them. */
#include "core/txn/page.h"
#include "core/txn/render.h"
#include "core/txn/tx.h"
#include "core/txn/worker_polls.h"
#include "core/usecase/use_cases.h"

#include "store/run/worker_queues.h"

/* --- what is known, but for the jobs that are ready --- */

/* One worker at one queue, or the jobs of a queue that wait for their next attempt, or within a
 * durable function. */
struct fact {
    struct str queue;
    struct str worker; /* ptr NULL: nobody's, they wait */
    int64_t jobs;      /* that it has, or that wait; 0 for a poll */
    int64_t polled_at; /* -1: it tells of jobs */
    bool shared;       /* by a worker for all tenants */
    bool suspended;    /* they wait within a durable function */
};

struct facts {
    struct arena *arena;
    struct fact *items;
    size_t count, room;
    bool all;  /* every lease and delay was looked at */
    bool full; /* no memory */
};

static void add_fact(struct facts *f, struct fact fact)
{
    if (f->count == f->room) {
        size_t room = MAX(f->room * 2, (size_t)64);
        struct fact *more = arena_alloc(f->arena, room * sizeof(*more));
        if (more == NULL) {
            f->full = true;
            return;
        }
        if (f->count > 0)
            memcpy(more, f->items, f->count * sizeof(*more));
        f->items = more;
        f->room = room;
    }
    if (arena_keep(f->arena, &fact.queue) && arena_keep(f->arena, &fact.worker))
        f->items[f->count++] = fact;
    else
        f->full = true;
}

static void add_poll(void *ctx, const struct poll_entry *e)
{
    add_fact(ctx, (struct fact){.queue = str_of(e->queue),
                                .worker = str_of(e->worker),
                                .polled_at = e->last_at,
                                .shared = strcmp(e->tenant, "*") == 0});
}

static void add_timed(void *ctx, struct str queue, struct str worker, int64_t count)
{
    if (!str_starts_with(queue, STR(OWN_QUEUES)))
        add_fact(ctx,
                 (struct fact){.queue = queue, .worker = worker, .jobs = count, .polled_at = -1});
}

static void add_suspended(void *ctx, struct str queue, struct str worker, int64_t count)
{
    (void)worker;
    add_fact(ctx, (struct fact){.queue = queue, .jobs = count, .polled_at = -1, .suspended = true});
}

static int by_text(struct str a, struct str b)
{
    int order = memcmp(a.len > 0 ? a.ptr : "", b.len > 0 ? b.ptr : "", MIN(a.len, b.len));
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int by_queue(const void *a, const void *b)
{
    const struct fact *x = a;
    const struct fact *y = b;
    int order = by_text(x->queue, y->queue);
    return order != 0 ? order : by_text(x->worker, y->worker);
}

static int by_worker(const void *a, const void *b)
{
    const struct fact *x = a;
    const struct fact *y = b;
    int order = by_text(x->worker, y->worker);
    return order != 0 ? order : by_text(x->queue, y->queue);
}

static enum err collect(struct read_tx *tx, const struct tenant *tenant, struct facts *f,
                        int (*order)(const void *, const void *))
{
    *f = (struct facts){.arena = &tx->arena};
    bool all_suspended = true;
    enum err e = queues_timed(tx->db, tenant->num, add_timed, f, &f->all);
    if (e == ERR_OK)
        e = queues_suspended(tx->db, tenant->num, add_suspended, f, &all_suspended);
    f->all &= all_suspended;
    worker_polls_list(tx->polls, tenant->id, add_poll, f);
    if (e == ERR_OK && f->full)
        e = ERR_NO_MEMORY;
    if (e == ERR_OK && f->count > 0)
        qsort(f->items, f->count, sizeof(*f->items), order);
    return e;
}

/* --- queues --- */

struct queues_page {
    struct read_tx *tx;
    const struct tenant *tenant;
    struct facts facts;
    size_t at;       /* the first fact behind the cursor */
    int64_t passed;  /* queues of others */
    struct str next; /* with ready jobs of the tenant; ptr NULL: none, once `sought` */
    bool sought;
    bool cut;             /* enough was passed over: the next page goes on from `next` */
    bool without_workers; /* only queues with jobs that nobody polls */
};

/* What is shown of a queue. */
struct queue_figures {
    struct queue_ready ready;
    int64_t running;
    int64_t delayed;
    int64_t suspended;
    int64_t workers;
    int64_t polled_at;
};

/* Is it one that belongs on the page though no job in it may be ready? */
static bool is_own(const struct fact *fact)
{
    return fact->polled_at < 0 || !fact->shared;
}

static enum err seek_ready(struct queues_page *q, struct str after)
{
    bool found = true;
    bool own = false;
    enum err e = ERR_OK;
    q->next = after;
    while (e == ERR_OK && found && !own && !q->cut) {
        e = queues_next(q->tx->db, q->tenant->num, q->next, &q->tx->arena, &found, &q->next, &own);
        own = own && !str_starts_with(q->next, STR(OWN_QUEUES));
        q->cut = found && !own && ++q->passed >= QUEUES_PASSED_MAX;
    }
    if (!found)
        q->next = STR_NONE;
    q->sought = true;
    return e;
}

static enum err read_figures(struct queues_page *q, struct str name, struct queue_figures *ret)
{
    struct queue_figures f = {.polled_at = -1};
    struct str last = STR_NONE; /* a worker may poll for the tenant and for all: it counts once */
    for (size_t i = q->at; i < q->facts.count && by_text(q->facts.items[i].queue, name) <= 0; i++) {
        const struct fact *fact = &q->facts.items[i];
        if (!str_eq(fact->queue, name))
            continue;
        f.running += fact->worker.ptr != NULL ? fact->jobs : 0;
        f.delayed += fact->worker.ptr == NULL && !fact->suspended ? fact->jobs : 0;
        f.suspended += fact->suspended ? fact->jobs : 0;
        f.polled_at = MAX(f.polled_at, fact->polled_at);
        bool polls =
            fact->worker.ptr != NULL && fact->polled_at >= q->tx->now_ms - POLLED_LATELY_MS;
        if (polls && !str_eq(last, fact->worker)) {
            f.workers++;
            last = fact->worker;
        }
    }
    *ret = f;
    return queues_ready(q->tx->db, q->tenant->num, name, &ret->ready);
}

static void show_queue(const struct queues_page *q, struct page *page, struct str name,
                       const struct queue_figures *f)
{
    struct json_out *o = &page->out;
    json_open(o, NULL, '{');
    json_add_text(o, "queue", name);
    json_add_int(o, "ready", f->ready.count);
    json_add_int(o, "running", f->running);
    json_add_int(o, "delayed", f->delayed);
    json_add_int(o, "suspended", f->suspended);
    json_add_bool(o, "exact", q->facts.all && f->ready.count < QUEUE_READY_MAX);
    json_add_time(o, "oldest", f->ready.oldest);
    json_add_int(o, "workers", f->workers);
    json_add_time(o, "last_polled_at", f->polled_at);
    json_close(o, '}');
    page_set_last(page, name);
}

static bool is_wanted(const struct queues_page *q, const struct queue_figures *f)
{
    return !q->without_workers ||
           (f->workers == 0 && f->ready.count + f->delayed + f->suspended > 0);
}

/* The next queue by name behind the cursor, of both sources; ptr NULL: none. */
static struct str next_queue(struct queues_page *q, struct str after)
{
    const struct facts *f = &q->facts;
    while (q->at < f->count && by_text(f->items[q->at].queue, after) <= 0)
        q->at++;
    size_t own = q->at;
    while (own < f->count && !is_own(&f->items[own]))
        own++;
    struct str timed = own < f->count ? f->items[own].queue : STR_NONE;
    if (q->next.ptr == NULL || (timed.ptr != NULL && by_text(timed, q->next) < 0))
        return timed;
    return q->next;
}

static enum err fill_queues(struct queues_page *q, struct page *page, struct str cursor)
{
    enum err e = ERR_OK;
    for (;;) {
        if (e == ERR_OK && (!q->sought || (q->next.ptr != NULL && by_text(q->next, cursor) <= 0)))
            e = seek_ready(q, cursor);
        struct str name = next_queue(q, cursor);
        bool past = q->cut && (name.ptr == NULL || by_text(name, q->next) >= 0);
        if (e != ERR_OK || (name.ptr == NULL && !past))
            return e;
        if (past) {
            page->more = true;
            page_set_last(page, q->next);
            return ERR_OK;
        }
        struct queue_figures figures;
        e = read_figures(q, name, &figures);
        bool wanted = e == ERR_OK && is_wanted(q, &figures);
        if (wanted && !page_takes(page))
            return ERR_OK;
        if (wanted)
            show_queue(q, page, name, &figures);
        cursor = name;
    }
}

static enum err list_queues(struct op *op, struct read_tx *tx)
{
    const struct list_queues_input *in = op->input;
    struct tenant *tenant;
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    if (in->cursor.ptr != NULL && !str_is_name(in->cursor))
        return problem_set(&op->problem, ERR_CURSOR_INVALID,
                           "The cursor does not belong to this list");
    struct queues_page q = {.tx = tx, .tenant = tenant, .without_workers = in->without_workers};
    struct page page = page_begin(op, in->limit);
    e = collect(tx, tenant, &q.facts, by_queue);
    if (e == ERR_OK)
        e = fill_queues(&q, &page, in->cursor.ptr != NULL ? in->cursor : STR(""));
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot list the queues");
    page_end(&page);
    return ERR_OK;
}

const struct use_case UC_LIST_QUEUES = {.name = "list_queues", .read = list_queues};

/* --- workers --- */

struct workers_page {
    struct read_tx *tx;
    const struct tenant *tenant;
    struct facts facts;
};

/* Has the tenant anything in the queue? */
static enum err has_jobs(const struct workers_page *w, struct str queue, bool *ret)
{
    struct queue_ready ready = {.count = 0};
    *ret = false;
    for (size_t i = 0; i < w->facts.count && !*ret; i++)
        *ret = w->facts.items[i].jobs > 0 && str_eq(w->facts.items[i].queue, queue);
    enum err e = *ret ? ERR_OK : queues_ready(w->tx->db, w->tenant->num, queue, &ready);
    *ret |= ready.count > 0;
    return e;
}

/* Leaves those facts in place that the tenant may see: the rest loses its queue. */
static enum err hide_foreign(struct workers_page *w, size_t from, size_t to, bool *ret_any)
{
    enum err e = ERR_OK;
    *ret_any = false;
    for (size_t i = from; i < to && e == ERR_OK; i++) {
        struct fact *fact = &w->facts.items[i];
        bool seen = true;
        if (!is_own(fact))
            e = has_jobs(w, fact->queue, &seen);
        if (!seen)
            fact->queue = STR_NONE;
        *ret_any |= seen;
    }
    return e;
}

static void show_worker(const struct workers_page *w, struct page *page, size_t from, size_t to)
{
    struct json_out *o = &page->out;
    int64_t polled_at = -1;
    int64_t running = 0;
    bool shared = false;
    struct str last = STR_NONE;
    json_open(o, NULL, '{');
    json_add_text(o, "worker_id", w->facts.items[from].worker);
    json_open(o, "queues", '[');
    for (size_t i = from; i < to; i++) {
        const struct fact *fact = &w->facts.items[i];
        if (fact->queue.ptr == NULL)
            continue;
        if (!str_eq(last, fact->queue))
            json_add_text(o, NULL, fact->queue);
        last = fact->queue;
        polled_at = MAX(polled_at, fact->polled_at);
        running += fact->jobs;
        shared |= fact->shared;
    }
    json_close(o, ']');
    json_add_int(o, "running", running);
    json_add_bool(o, "exact", w->facts.all);
    json_add_bool(o, "shared", shared);
    json_add_time(o, "last_polled_at", polled_at);
    json_close(o, '}');
}

/* Ids of workers are any text, cursors are not. */
static void set_cursor(struct page *page, struct str worker)
{
    struct buf hex;
    buf_init(&hex, CURSOR_MAX);
    buf_put_hex(&hex, (const unsigned char *)worker.ptr, worker.len);
    page_take_last(page, &hex);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_cursor(struct str cursor, char *id, size_t size, struct str *ret)
{
    size_t len = 0;
    if (cursor.len % 2 != 0 || cursor.len / 2 > size)
        return false;
    for (size_t i = 0; i < cursor.len; i += 2) {
        int high = hex_value(cursor.ptr[i]);
        int low = hex_value(cursor.ptr[i + 1]);
        if (high < 0 || low < 0)
            return false;
        id[len++] = (char)(high * 16 + low);
    }
    *ret = (struct str){id, len};
    return true;
}

static enum err fill_workers(struct workers_page *w, struct page *page, struct str after)
{
    enum err e = ERR_OK;
    size_t to;
    for (size_t from = 0; from < w->facts.count && e == ERR_OK; from = to) {
        struct str id = w->facts.items[from].worker;
        bool any = false;
        to = from;
        while (to < w->facts.count && str_eq(w->facts.items[to].worker, id))
            to++;
        if (id.ptr == NULL || by_text(id, after) <= 0)
            continue;
        e = hide_foreign(w, from, to, &any);
        if (e != ERR_OK || !any)
            continue;
        if (!page_takes(page))
            return ERR_OK;
        show_worker(w, page, from, to);
        set_cursor(page, id);
    }
    return e;
}

static enum err list_workers(struct op *op, struct read_tx *tx)
{
    const struct list_dead_input *in = op->input;
    struct tenant *tenant;
    struct str after = STR("");
    char id[NAME_MAX_LEN];
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    if (in->cursor.ptr != NULL && !read_cursor(in->cursor, id, sizeof(id), &after))
        return problem_set(&op->problem, ERR_CURSOR_INVALID,
                           "The cursor does not belong to this list");
    struct workers_page w = {.tx = tx, .tenant = tenant};
    struct page page = page_begin(op, in->limit);
    e = collect(tx, tenant, &w.facts, by_worker);
    if (e == ERR_OK)
        e = fill_workers(&w, &page, after);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot list the workers");
    page_end(&page);
    return ERR_OK;
}

const struct use_case UC_LIST_WORKERS = {.name = "list_workers", .read = list_workers};
