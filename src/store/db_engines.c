/* The engines of the server. */
#include "store/postgres/postgres.h"
#include "store/sqlite/sqlite.h"

const struct db_engine *const DB_ENGINES[] = {&DB_ENGINE_SQLITE, &DB_ENGINE_POSTGRES, NULL};
