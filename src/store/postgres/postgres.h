/* The PostgreSQL engine: "postgres://USER@HOST/DATABASE", as libpq reads it, with parameters of
 * pawl's own:
 *   schema=NAME   the schema of the directory, "pawl" unless given
 *   shard=N       the shard, 0 unless given; its tables are in the schema NAME_N
 *   epoch=N       a node has taken the shard with this epoch. Without it a writer takes it itself
 */
#ifndef PAWL_STORE_POSTGRES_POSTGRES_H
#define PAWL_STORE_POSTGRES_POSTGRES_H

#include "store/db_driver.h"

extern const struct db_engine DB_ENGINE_POSTGRES;

#endif
