/* The address of a Redis server: redis://[USER][:PASSWORD@]HOST[:PORT][/DATABASE]. Pure. */
#ifndef PAWL_GATE_REDIS_URL_H
#define PAWL_GATE_REDIS_URL_H

#include "base/str.h"

struct redis_url {
    char host[256];
    char user[256];     /* "": the default one */
    char password[256]; /* "": none */
    int port;           /* 6379 if the URL says none */
    int database;
};

/* Why the text cannot be used, as the end of a sentence that begins with it; NULL: it can, and
 * *ret is set. User and password may be percent-encoded. */
const char *redis_url_parse(struct str text, struct redis_url *ret);

#endif
