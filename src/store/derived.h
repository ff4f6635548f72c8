/* Pieces of SQL about what is derived from the runs, shared by the checks and the repair. */
#ifndef PAWL_STORE_DERIVED_H
#define PAWL_STORE_DERIVED_H

/* A list of scopes as "3,17" has this number in it. */
#define LIST_HAS(list, num) "(',' || " list " || ',' LIKE '%,' || CAST(" num " AS TEXT) || ',%')"

/* The number of the last run, or idempotency record, that its late index has. */
#define RUNS_THROUGH "COALESCE((SELECT through FROM indexed WHERE name = 'runs'), 0)"
#define KEYS_THROUGH "COALESCE((SELECT through FROM indexed WHERE name = 'idempotency'), 0)"

/* A column of the first place in the queue of a line. */
#define FIRST_IN_LINE(line, column) \
    "(SELECT q." column " FROM queue q WHERE q.line = " line " ORDER BY q.urgency, q.run LIMIT 1)"

#endif
