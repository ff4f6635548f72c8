/* Base64 in the alphabet for URLs, without padding: RFC 4648, section 5. As in cookies and JSON Web
 * Tokens. */
#ifndef PAWL_BASE_BASE64URL_H
#define PAWL_BASE_BASE64URL_H

#include "base/buf.h"

void base64url_put(struct buf *b, const void *bytes, size_t len);

/* Decodes all of `text` to at most `room` bytes. False when it has any other character, padding,
 * bits that no byte holds, or is too long: each value has one text. */
MUST_CHECK bool base64url_decode(struct str text, void *out, size_t room, size_t *ret_len);

#endif
