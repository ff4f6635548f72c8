/* Routes of figures: what happened in the last minutes, how full limits are. */
#include "api/params.h"
#include "api/routes.h"
#include "domain/minute_counts.h"

enum { STATS_MINUTES_DEFAULT = 60 };

static const struct param STATS[] = {
    QUERY("minutes", PARAM_INT, .min = 1, .max = MINUTES_OF_DAY, .initial = STATS_MINUTES_DEFAULT,
          INTO(struct get_stats_input, minutes)),
};

static const struct param ADMISSION[] = {
    QUERY_LIMIT(struct get_admission_input),
};

const struct route STATS_ROUTES[] = {
    {"GET", "/api/v1/admission", MAY_READ, .use_case = &UC_GET_ADMISSION,
     TAKES(struct get_admission_input, ADMISSION)},
    {"GET", "/api/v1/stats", MAY_READ, ROUTE_ANY_TENANT, &UC_GET_STATS,
     TAKES(struct get_stats_input, STATS)},
    {.method = NULL},
};
