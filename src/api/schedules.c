/* Routes of schedules. */
#include "api/call.h"

enum err prepare_put_schedule(struct call *c)
{
    struct put_schedule_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    const json_t *input;
    struct str overlap = STR("skip");
    int64_t catch_up_s = 0;
    in->timezone = STR("UTC");
    struct fields f;
    call_fields(c, &f, c->body);
    fields_name(&f, "workflow_id", NAME_MAX_LEN, &in->workflow_id);
    fields_text(&f, "cron", TEXT_MAX, &in->cron);
    fields_text(&f, "timezone", NAME_MAX_LEN, &in->timezone);
    fields_text(&f, "overlap", NAME_MAX_LEN, &overlap);
    fields_int(&f, "catch_up_s", 0, SCHEDULE_CATCH_UP_S_MAX, &catch_up_s);
    fields_any(&f, "input", &input);
    if (json_is_null(input))
        fields_default(&f, "input");
    fields_bool(&f, "paused", &in->paused);
    fields_require(&f, "workflow_id");
    fields_require(&f, "cron");
    in->overlap = overlap_of(overlap);
    if (f.err == ERR_OK && in->overlap == OVERLAP_COUNT)
        fields_fault(&f, "overlap", "must be one of skip, queue, allow");
    in->catch_up_ms = catch_up_s * 1000;
    in->input = STR("null");
    enum err e = fields_end(&f);
    if (e == ERR_OK && input != NULL)
        e = call_json_text(c, input, &in->input);
    return e == ERR_OK ? call_name(c, NAME_MAX_LEN, &in->id) : e;
}

enum err prepare_schedule(struct call *c)
{
    struct schedule_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    return call_name(c, NAME_MAX_LEN, &in->id);
}
