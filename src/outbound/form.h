/* Fields of a query or a form: application/x-www-form-urlencoded. */
#ifndef PAWL_OUTBOUND_FORM_H
#define PAWL_OUTBOUND_FORM_H

#include "base/buf.h"

/* Everything but the unreserved characters of a URL as %XX. */
void form_put_encoded(struct buf *out, struct str text);
/* name=value */
void form_put_field(struct buf *out, const char *name, struct str value);

#endif
