/* Damage to the rows of a store, past everything that keeps a store sound: any value in any column,
 * rows that are gone. */
#ifndef PAWL_FUZZ_DAMAGE_H
#define PAWL_FUZZ_DAMAGE_H

#include "../taker.h"

#include <sqlite3.h>

/* Once: finds the tables, and takes off the schema what would refuse a value (STRICT, NOT NULL). */
void damage_setup(sqlite3 *db);
/* Changes a column of a row or of all rows, or removes a row, as the input decides. No server may
 * be open. */
void damage_do(sqlite3 *db, struct taker *t);

#endif
