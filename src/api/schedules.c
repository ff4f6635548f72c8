/* Routes of schedules. */
#include "api/routes.h"

static const struct param LIST[] = {
    QUERY_PAGE(struct list_input),
};

static const struct param SCHEDULE[] = {
    PATH_NAME("schedule_id", struct schedule_input, id),
};

static const struct param PUT[] = {
    PATH_NAME("schedule_id", struct put_schedule_input, id),
    BODY("workflow_id", PARAM_NAME, .required = true, .max = NAME_MAX_LEN,
         INTO(struct put_schedule_input, workflow_id)),
    BODY("cron", PARAM_TEXT, .required = true, .max = TEXT_MAX,
         INTO(struct put_schedule_input, cron)),
    BODY("timezone", PARAM_TEXT, .max = NAME_MAX_LEN, .initial_text = "UTC",
         INTO(struct put_schedule_input, timezone)),
    BODY("overlap", PARAM_ENUM, WORDS(overlap_name, OVERLAP_COUNT), .initial = OVERLAP_SKIP,
         INTO(struct put_schedule_input, overlap)),
    BODY("catch_up_s", PARAM_INT, .max = SCHEDULE_CATCH_UP_S_MAX, .scale = 1000,
         INTO(struct put_schedule_input, catch_up_ms)),
    BODY("input", PARAM_JSON, .initial_text = "null", INTO(struct put_schedule_input, input)),
    BODY("paused", PARAM_BOOL, INTO(struct put_schedule_input, paused)),
};

const struct route SCHEDULE_ROUTES[] = {
    {"GET", "/api/v1/schedules", MAY_READ, .use_case = &UC_LIST_SCHEDULES,
     TAKES(struct list_input, LIST)},
    {"PUT", "/api/v1/schedules/{}", MAY_RUN, .use_case = &UC_PUT_SCHEDULE,
     TAKES(struct put_schedule_input, PUT)},
    {"GET", "/api/v1/schedules/{}", MAY_READ, .use_case = &UC_GET_SCHEDULE,
     TAKES(struct schedule_input, SCHEDULE)},
    {"DELETE", "/api/v1/schedules/{}", MAY_RUN, .use_case = &UC_DELETE_SCHEDULE,
     TAKES(struct schedule_input, SCHEDULE)},
    {"POST", "/api/v1/schedules/{}/trigger", MAY_RUN, .use_case = &UC_TRIGGER_SCHEDULE,
     TAKES(struct schedule_input, SCHEDULE)},
    {.method = NULL},
};
