/* What the routes that signal a run or an entity share. */
#ifndef PAWL_API_SIGNAL_H
#define PAWL_API_SIGNAL_H

#include "api/call.h"

/* `needs_key`: a caller that waits for an answer must be able to ask for it again. */
#define SIGNAL_MEMBERS(type, needs_key)                                                     \
    BODY("name", PARAM_NAME, .required = true, .max = NAME_MAX_LEN, INTO(type, name)),      \
        BODY("payload", PARAM_JSON, .max = JOB_OUTPUT_MAX, .initial_text = "null",          \
             INTO(type, payload)),                                                          \
        BODY("dedup_key", PARAM_TEXT, .required = needs_key, .min = 1, .max = IDEM_KEY_MAX, \
             INTO(type, dedup_key))

/* The digest by which signals with the same dedup_key are compared; left alone when there is no
 * key. */
MUST_CHECK enum err signal_request(struct call *c, struct str name, struct str dedup_key,
                                   struct sha256 *ret);

#endif
