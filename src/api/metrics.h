/* GET /metrics: one text for all scrapers that wait for it. */
#ifndef PAWL_API_METRICS_H
#define PAWL_API_METRICS_H

#include "api/call.h"

MUST_CHECK struct metrics_maker *metrics_maker_new(struct api *api);
void metrics_maker_free(struct metrics_maker *maker);
void metrics_text_drop(struct metrics_text *text); /* NULL is fine */
void metrics_tick(struct api *api);
int metrics_timeout_ms(const struct api *api); /* -1: forever */

#endif
