/* The PostgreSQL engine: "postgres://USER@HOST/DATABASE", as libpq reads it, with one parameter of
 * pawl's own: schema=NAME, the schema of the directory, "pawl" unless given. */
#ifndef PAWL_STORE_POSTGRES_POSTGRES_H
#define PAWL_STORE_POSTGRES_POSTGRES_H

#include "store/db_driver.h"

extern const struct db_engine DB_ENGINE_POSTGRES;

#endif
