/* Lists of runs, and searching them.
 *
 * A search looks in two places, one after the other. First where it can look directly: the run that
 * was started with this key, and the runs whose id begins so. Then, newest first, at runs whose
 * error or label may fit, of which it has to look at each. */
#include "core/txn/page.h"
#include "core/txn/render.h"
#include "core/txn/tx.h"
#include "core/usecase/use_cases.h"

#include "base/limits.h"

enum phase { PHASE_DIRECT, PHASE_SEARCH, PHASE_COUNT };

struct run_list {
    struct op *op;
    struct read_tx *tx;
    struct page page;
    struct run_filter filter;
    bool full; /* the page is */

    /* Of a search. */
    struct str text; /* ptr NULL: there is none */
    enum phase phase;
    struct run_search search;
    struct uuid id_low, id_high; /* ids that begin so; zero: it cannot be one */
    int64_t key_run;             /* the run that the key has started; 0: none */
};

/* --- what is asked for --- */

static enum err bad_request(struct run_list *l, const char *why)
{
    return problem_set(&l->op->problem, ERR_BAD_REQUEST, "%s", why);
}

static enum err read_filter(struct run_list *l, const struct list_runs_input *in)
{
    struct run_filter *f = &l->filter;
    struct uuid parent;
    *f = (struct run_filter){
        .tenant = l->op->tenant_num,
        .statuses = in->statuses,
        .workflow_id = in->workflow_id,
        .label_name = in->label_name,
        .label_value = in->label_value,
        .created_after = in->created_after,
        .created_before = in->created_before,
    };
    if (in->id_prefix.ptr != NULL && !uuid_parse_prefix(in->id_prefix, &f->id_low, &f->id_high))
        return bad_request(l, "id_prefix is not the beginning of an id");
    if (in->parent.ptr != NULL && !uuid_parse(in->parent, &parent))
        return bad_request(l, "parent is not the id of a run");
    if (in->parent.ptr != NULL)
        f->parent_run = uuid_time(parent);
    if (in->rerun_of.ptr != NULL && !uuid_parse(in->rerun_of, &f->rerun_of))
        return bad_request(l, "rerun_of is not the id of a run");
    return ERR_OK;
}

/* An error is kept as JSON: the text as it is written there, in small letters. */
static enum err read_text(struct run_list *l)
{
    struct buf json;
    buf_init(&json, 8 * KIB);
    json_put_text(&json, l->text);
    for (size_t i = 0; buf_ok(&json) && i < json.len; i++)
        json.ptr[i] =
            json.ptr[i] >= 'A' && json.ptr[i] <= 'Z' ? (char)(json.ptr[i] | 0x20) : json.ptr[i];
    struct str quoted = arena_take(&l->tx->arena, &json);
    if (quoted.ptr == NULL)
        return problem_set(&l->op->problem, ERR_NO_MEMORY, "Out of memory");
    l->search.error = (struct str){quoted.ptr + 1, quoted.len - 2};
    struct str name;
    struct str value;
    if (str_cut(l->text, '=', &name, &value) && name.len > 0) {
        l->search.label_name = name;
        l->search.label_value = value;
    }
    return ERR_OK;
}

/* Through the index of keys, which the writer keeps. */
static enum err find_key(struct run_list *l)
{
    struct idem_record record;
    struct key_hints hints;
    bool found = false;
    struct idem_keys *keys = l->tx->known_keys;
    if (keys == NULL || !idem_keys_glance(keys, l->filter.tenant, l->text, &hints))
        return ERR_OK;
    enum err e = idempotency_follow(l->tx->db, keys, l->filter.tenant, l->text, &hints,
                                    &l->tx->arena, &found, &record);
    if (e == ERR_OK && found && record.has_run)
        l->key_run = uuid_time(record.run_id);
    return e == ERR_OK ? ERR_OK : problem_set(&l->op->problem, e, "Cannot look for the key");
}

static enum err read_search(struct run_list *l)
{
    if (!uuid_parse_prefix(l->text, &l->id_low, &l->id_high))
        l->id_high = (struct uuid){{0}};
    enum err e = read_text(l);
    return e == ERR_OK ? find_key(l) : e;
}

/* The cursor of a search says in which phase it is. */
static enum err read_cursor(struct run_list *l, struct str cursor, int64_t *ret_before)
{
    int64_t place[3] = {PHASE_DIRECT, INT64_MAX, 0};
    bool sound = true;
    if (cursor.ptr != NULL)
        sound =
            l->text.ptr != NULL ? page_read_place(cursor, place) : str_to_i64(cursor, &place[1]);
    if (!sound || place[0] < 0 || place[0] >= PHASE_COUNT || place[1] < 0)
        return problem_set(&l->op->problem, ERR_CURSOR_INVALID,
                           "The cursor does not belong to this list");
    l->phase = (enum phase)place[0];
    *ret_before = place[1];
    return ERR_OK;
}

/* --- what is shown --- */

static bool is_direct_hit(const struct run_list *l, const struct run *run)
{
    return run->num == l->key_run ||
           (!uuid_is_nil(l->id_high) &&
            memcmp(run->id.bytes, l->id_low.bytes, sizeof(run->id.bytes)) >= 0 &&
            memcmp(run->id.bytes, l->id_high.bytes, sizeof(run->id.bytes)) <= 0);
}

static bool show(struct run_list *l, const struct run *run)
{
    l->full = !page_takes(&l->page);
    if (!l->full)
        render_run(&l->page.out, NULL, run, NULL, NULL);
    return !l->full;
}

static bool add_run(void *ctx, const struct run *run)
{
    struct run_list *l = ctx;
    bool shown = l->phase == PHASE_SEARCH ? is_direct_hit(l, run) : run->num == l->key_run;
    return shown || show(l, run);
}

static enum err show_run_of_key(struct run_list *l)
{
    struct run run;
    bool found = false;
    if (l->key_run == 0)
        return ERR_OK;
    enum err e = runs_find_num(l->tx->db, l->key_run, &l->tx->arena, &found, &run);
    if (e == ERR_OK && found && runs_fit(&l->filter, &run))
        (void)show(l, &run); /* the first of its page */
    return e;
}

static int order_of(struct uuid a, struct uuid b)
{
    return memcmp(a.bytes, b.bytes, sizeof(a.bytes));
}

/* Ids that begin so, if a filter of ids leaves any. */
static bool narrow_ids(const struct run_list *l, struct run_filter *f)
{
    bool any = uuid_is_nil(f->id_high);
    f->id_low = any || order_of(l->id_low, f->id_low) > 0 ? l->id_low : f->id_low;
    f->id_high = any || order_of(l->id_high, f->id_high) < 0 ? l->id_high : f->id_high;
    return order_of(f->id_low, f->id_high) <= 0;
}

static enum err list_direct(struct run_list *l, int64_t before, int64_t *ret_next)
{
    struct run_filter f = l->filter;
    enum err e = before == INT64_MAX ? show_run_of_key(l) : ERR_OK;
    *ret_next = -1;
    if (e != ERR_OK || uuid_is_nil(l->id_high) || !narrow_ids(l, &f))
        return e;
    return runs_list(l->tx->db, &f, before, add_run, l, ret_next);
}

static enum err list_page(struct run_list *l, int64_t before, int64_t *ret_next)
{
    if (l->text.ptr == NULL)
        return runs_list(l->tx->db, &l->filter, before, add_run, l, ret_next);
    if (l->phase == PHASE_DIRECT) {
        enum err e = list_direct(l, before, ret_next);
        if (e != ERR_OK || *ret_next >= 0)
            return e;
        l->phase = PHASE_SEARCH;
        before = INT64_MAX;
    }
    l->filter.search = &l->search;
    return runs_list(l->tx->db, &l->filter, before, add_run, l, ret_next);
}

static void end_page(struct run_list *l, int64_t next)
{
    char place[64];
    l->page.more = next >= 0;
    if (l->page.more && l->text.ptr != NULL) {
        (void)snprintf(place, sizeof(place), "%d.%lld.0", (int)l->phase, (long long)next);
        page_set_last(&l->page, str_of(place));
    } else if (l->page.more) {
        page_set_last_number(&l->page, next);
    }
    page_end_items(&l->page);
    json_add_bool(&l->page.out, "stopped_early", next >= 0 && !l->full);
    json_close(&l->page.out, '}');
}

static enum err list_runs(struct op *op, struct read_tx *tx)
{
    const struct list_runs_input *in = op->input;
    struct tenant *tenant;
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    struct run_list l = {.op = op, .tx = tx, .text = in->search};
    int64_t before = INT64_MAX;
    int64_t next = -1;
    e = read_filter(&l, in);
    if (e == ERR_OK)
        e = read_cursor(&l, in->cursor, &before);
    if (e == ERR_OK && l.text.ptr != NULL)
        e = read_search(&l);
    if (e != ERR_OK)
        return e;
    l.page = page_begin(op, in->limit);
    e = list_page(&l, before, &next);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot list the runs");
    end_page(&l, next);
    return ERR_OK;
}

const struct use_case UC_LIST_RUNS = {.name = "list_runs", .read = list_runs};
