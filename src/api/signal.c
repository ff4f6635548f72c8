/* What the routes that signal a run or an entity share. */
#include "api/signal.h"

#include "domain/entity/dedup.h"

enum err signal_request(struct call *c, struct str name, struct str dedup_key, struct sha256 *ret)
{
    if (dedup_key.ptr == NULL)
        return ERR_OK;
    return dedup_request(name, json_member(c->body, STR("payload")), &c->op.problem, ret);
}
