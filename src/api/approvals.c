/* Routes of approvals: what waits for people, and their decisions. */
#include "api/routes.h"

static const char *order_name(unsigned oldest_first)
{
    return oldest_first != 0 ? "oldest" : "newest";
}

static const struct param LIST[] = {
    QUERY("status", PARAM_ENUM, WORDS(approval_status_name, APPROVAL_STATUS_COUNT),
          .initial = APPROVAL_STATUS_COUNT, INTO(struct list_approvals_input, status)),
    QUERY("order", PARAM_ENUM, WORDS(order_name, 2),
          INTO(struct list_approvals_input, oldest_first)),
    QUERY_PAGE(struct list_approvals_input),
};

static const struct param APPROVAL[] = {
    PATH_UUID("job_id", ERR_APPROVAL_NOT_FOUND, struct get_job_input, job_id),
};

static const struct param DECIDE[] = {
    PATH_UUID("job_id", ERR_APPROVAL_NOT_FOUND, struct decide_input, job_id),
    BODY("reason", PARAM_TEXT, .max = TEXT_MAX, INTO(struct decide_input, reason)),
    BODY("expected_hash", PARAM_TEXT, .max = NAME_MAX_LEN,
         INTO(struct decide_input, expected_hash)),
    BODY("edited", PARAM_JSON, .max = JOB_OUTPUT_MAX, INTO(struct decide_input, edited_text),
         AND_INTO(struct decide_input, edited)),
};

static const struct param STATS[] = {
    QUERY("days", PARAM_INT, .min = 1, .max = APPROVAL_STATS_DAYS_MAX,
          .initial = APPROVAL_STATS_DAYS_DEFAULT, INTO(struct approval_stats_input, days)),
    QUERY("workflow_id", PARAM_TEXT, INTO(struct approval_stats_input, workflow_id)),
};

const struct route APPROVAL_ROUTES[] = {
    {"GET", "/api/v1/approvals", MAY_READ, .use_case = &UC_LIST_APPROVALS,
     TAKES(struct list_approvals_input, LIST)},
    {"GET", "/api/v1/approvals/analytics", MAY_READ, .use_case = &UC_APPROVAL_STATS,
     TAKES(struct approval_stats_input, STATS)},
    {"GET", "/api/v1/approvals/{}", MAY_READ, .use_case = &UC_GET_APPROVAL,
     TAKES(struct get_job_input, APPROVAL)},
    {"POST", "/api/v1/approvals/{}/approve", MAY_DECIDE, ROUTE_PERSONAL, &UC_APPROVE,
     TAKES(struct decide_input, DECIDE)},
    {"POST", "/api/v1/approvals/{}/reject", MAY_DECIDE, ROUTE_PERSONAL, &UC_REJECT,
     TAKES(struct decide_input, DECIDE)},
    {.method = NULL},
};
