/* The embedded engine: SQLite on one file, "sqlite:PATH". */
#ifndef PAWL_STORE_SQLITE_SQLITE_H
#define PAWL_STORE_SQLITE_SQLITE_H

#include "store/db_driver.h"

extern const struct db_engine DB_ENGINE_SQLITE;
/* Of db_schema(), also for engines that decorate this one. */
extern const char SQLITE_SCHEMA_SQL[];

#endif
