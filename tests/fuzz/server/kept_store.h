/* The store of a fuzz program: SQLite on a file in memory, whose connections stay open, with their
 * prepared statements, from one server to the next. Opening them anew would take most of the time
 * of an input. In between the rows are put back as the template has them. */
#ifndef PAWL_FUZZ_KEPT_STORE_H
#define PAWL_FUZZ_KEPT_STORE_H

#include <sqlite3.h>

/* "sqlite:PATH", on a new file that goes with the process. */
const char *kept_store_url(void);
/* Makes what the store holds now the template. No server may be open. */
void kept_store_keep(void);
/* Puts all rows of the template back. No server may be open. */
void kept_store_reset(void);
/* A connection of its own, with nothing of pawl in between, to look or to do damage. */
sqlite3 *kept_store_raw(void);

#endif
