/* The embedded engine: SQLite on one file, "sqlite:PATH". */
#ifndef PAWL_STORE_SQLITE_SQLITE_H
#define PAWL_STORE_SQLITE_SQLITE_H

#include "store/db_driver.h"

extern const struct db_engine DB_ENGINE_SQLITE;

#endif
