/* One request as the engine sees it. */
#include "engine/op.h"

#include "base/limits.h"

void op_init(struct op *op, const struct use_case *use_case)
{
    *op = (struct op){.use_case = use_case};
    problem_init(&op->problem);
    buf_init(&op->answer.body, HTTP_REPLY_MAX);
    buf_init(&op->answer.kept_body, HTTP_REPLY_MAX);
}

void op_release(struct op *op)
{
    problem_release(&op->problem);
    buf_release(&op->answer.body);
    buf_release(&op->answer.kept_body);
}

void op_clear_result(struct op *op)
{
    op->err = ERR_OK;
    op->known_num = 0;
    op->gate_busy = false;
    problem_clear(&op->problem);
    struct answer *a = &op->answer;
    buf_clear(&a->body);
    buf_clear(&a->kept_body);
    a->status = 200;
    a->outcome = NULL;
    a->created = CREATED_UNSAID;
    a->has_run = a->run_over = a->replayed = a->changed_nothing = a->keep_waiting = a->told = false;
    a->already_decided = false;
    a->update_of = a->update_seq = 0;
    a->next_cursor[0] = '\0';
}
