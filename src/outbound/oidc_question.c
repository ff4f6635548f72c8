/* A question to an OpenID provider. */
#include "outbound/oidc_question.h"

#include "base/limits.h"

void oidc_question_init(struct oidc_question *q)
{
    *q = (struct oidc_question){.err = ERR_OK};
    problem_init(&q->problem);
    buf_init(&q->endpoint, HTTP_LINE_MAX);
}

void oidc_question_release(struct oidc_question *q)
{
    problem_release(&q->problem);
    buf_release(&q->endpoint);
}
