/* One request as the engine sees it. */
#include "core/txn/op.h"

#include "base/limits.h"

void op_init(struct op *op, const struct use_case *use_case)
{
    *op = (struct op){.use_case = use_case};
    problem_init(&op->problem);
    buf_init(&op->answer.body, HTTP_REPLY_MAX);
    buf_init(&op->answer.kept_body, HTTP_REPLY_MAX);
    buf_init(&op->answer.handed, HANDED_BYTES_MAX);
}

void op_release(struct op *op)
{
    problem_release(&op->problem);
    buf_release(&op->answer.body);
    buf_release(&op->answer.kept_body);
    buf_release(&op->answer.handed);
    free(op->failed_items);
}

enum err op_fail_item(struct op *op, int64_t item, enum err e)
{
    if (op->failed_items == NULL)
        op->failed_items = calloc(FAILED_ITEMS_MAX, sizeof(*op->failed_items));
    if (op->failed_items == NULL)
        return problem_set(&op->problem, ERR_NO_MEMORY, "No memory for what is refused");
    if (op->failed_item_count == FAILED_ITEMS_MAX)
        return ERR_INTERNAL;
    struct failed_item *s = &op->failed_items[op->failed_item_count++];
    s->item = item;
    s->err = e;
    (void)snprintf(s->detail, sizeof(s->detail), "%s", op->problem.detail);
    op->runs_again = true;
    return e;
}

const struct failed_item *op_failed_item(const struct op *op, int64_t item)
{
    for (size_t i = 0; i < op->failed_item_count; i++) {
        if (op->failed_items[i].item == item)
            return &op->failed_items[i];
    }
    return NULL;
}

void op_clear_result(struct op *op)
{
    op->err = ERR_OK;
    op->known_num = 0;
    op->tenant = NULL;
    op->gate_wanted = false;
    op->runs_again = false;
    problem_clear(&op->problem);
    struct answer *a = &op->answer;
    buf_clear(&a->body);
    buf_clear(&a->kept_body);
    buf_clear(&a->handed);
    a->status = 200;
    a->outcome = NULL;
    a->born = STR_NONE;
    a->key_in_run = false;
    a->key_num = 0;
    a->created = CREATED_UNSAID;
    a->has_run = a->run_over = a->replayed = a->changed_nothing = a->keep_waiting =
        a->refusal_wrote = false;
    a->already_decided = false;
    a->update_of = a->update_seq = 0;
    a->next_cursor[0] = '\0';
}

static struct str beginning_of(const struct answer *a)
{
    switch (a->created) {
    case CREATED_YES:
        return STR("{\"created\":true,");
    case CREATED_NO:
        return STR("{\"created\":false,");
    case CREATED_UNSAID:
        break;
    }
    return STR("");
}

void answer_begin(struct answer *a, enum answer_created created)
{
    assert(a->body.len == 0);
    a->created = created;
    buf_put(&a->body, beginning_of(a));
}

struct str answer_to_keep(const struct answer *a)
{
    if (a->kept_body.len > 0)
        return buf_str(&a->kept_body);
    struct str body = buf_str(&a->body);
    size_t begun = beginning_of(a).len;
    assert(body.len >= begun);
    return (struct str){body.ptr + begun, body.len - begun};
}

bool answer_replace(struct answer *a, struct buf *body)
{
    bool ok = buf_ok(body);
    struct buf unused = *body;
    if (ok) {
        unused = a->body;
        a->body = *body;
    }
    buf_release(&unused);
    return ok;
}

struct str op_admission_outcome(const struct op *op)
{
    if (op->answer.replayed)
        return STR("replayed");
    switch ((int)op->err) {
    case ERR_OK:
        return op->answer.outcome != NULL ? str_of(op->answer.outcome) : STR("admitted");
    case ERR_MAX_CONCURRENT_RUNS:
        return STR("limited");
    case ERR_QUEUE_FULL:
        return STR("queue_full");
    case ERR_RATE_LIMITED:
        return STR("rate_limited");
    case ERR_IDEM_KEY_REUSED:
        return STR("mismatched");
    default:
        return err_http_status(op->err) >= 500 ? STR("unavailable") : STR("refused");
    }
}
