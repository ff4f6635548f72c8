/* The engines of the server. */
#include "store/sqlite/sqlite.h"

const struct db_engine *const DB_ENGINES[] = {&DB_ENGINE_SQLITE, NULL};
