/* Routes of figures: what happened in the last minutes. */
#include "api/params.h"
#include "api/routes.h"
#include "domain/minute_counts.h"

enum { STATS_MINUTES_DEFAULT = 60 };

static const struct param STATS[] = {
    QUERY("minutes", PARAM_INT, .min = 1, .max = MINUTES_OF_DAY, .initial = STATS_MINUTES_DEFAULT,
          INTO(struct get_stats_input, minutes)),
};

const struct route STATS_ROUTES[] = {
    {"GET", "/api/v1/stats", MAY_READ, ROUTE_ANY_TENANT, &UC_GET_STATS,
     TAKES(struct get_stats_input, STATS)},
    {.method = NULL},
};
