/* How fast slots are freed, per tenant and per limit; Retry-After is estimated from it. Kept in
 * memory only and bounded; losing it does no harm. */
#ifndef PAWL_CORE_TXN_RELEASE_RATES_H
#define PAWL_CORE_TXN_RELEASE_RATES_H

#include "domain/admission/release_rate.h"

#include <stdbool.h>

struct release_rates;

/* NULL when memory ran out. */
struct release_rates *release_rates_new(void);
void release_rates_free(struct release_rates *release_rates);

/* scope 0: the tenant's own limit. */
void release_rates_note(struct release_rates *release_rates, int64_t tenant, int64_t scope,
                        int64_t now_ms);
int64_t release_rates_retry_after_s(const struct release_rates *release_rates, int64_t tenant,
                                    int64_t scope, int64_t now_ms);

#endif
