/* What must hold between the rows of a store, as far as rows can show it: a table of invariants,
 * each with the query that finds what breaks it. Written once for both engines, and so that each
 * query reads a table at most once from end to end: no look-up by tenant among the runs, which have
 * no such index, and none by run among the slots. */
#ifndef PAWL_STORE_DOCTOR_CHECK_H
#define PAWL_STORE_DOCTOR_CHECK_H

#include "store/db.h"

enum check_area {
    CHECK_SLOTS,
    CHECK_QUEUE,
    CHECK_RUNS,
    CHECK_JOBS,
    CHECK_APPROVALS,
    CHECK_ENTITIES,
    CHECK_WEBHOOKS,
    CHECK_INDEXES,
    CHECK_OBJECTS,
    CHECK_AREA_COUNT
};

/* Where an invariant belongs. */
enum {
    CHECK_FULL = 1,    /* looks at every row */
    CHECK_QUICK = 2,   /* costs as much as there are active and queued runs */
    CHECK_DERIVED = 4, /* is made of runs and entities alone: store/repair.h mends it */
};

struct invariant {
    enum check_area area;
    unsigned flags;
    const char *broken; /* for people: what a row of the query is */
    /* Columns: number of a tenant, number of a run or an entity, what is kept, what was counted;
     * each may be null. */
    const char *sql;
};

extern const struct invariant INVARIANTS[];
extern const size_t INVARIANT_COUNT;
/* Those of CHECK_ENTITIES and CHECK_OBJECTS; the others have all the rest. */
extern const struct invariant ENTITY_INVARIANTS[];
extern const size_t ENTITY_INVARIANT_COUNT;
extern const struct invariant OBJECT_INVARIANTS[];
extern const size_t OBJECT_INVARIANT_COUNT;

/* One thing that is wrong. */
struct finding {
    const char *what;
    bool derived;
    struct str tenant; /* its id; ptr NULL: of no tenant, or of one that is not there */
    bool has_run;      /* false also when the run is not there */
    struct uuid run_id;
    bool has_entity; /* false also when the entity is not there */
    struct str entity_type;
    struct str entity_id;
    bool has_seq; /* the place in a chain of the audit */
    int64_t seq;
    bool has_kept;
    int64_t kept;
    bool has_counted;
    int64_t counted;
};

struct check_result {
    int64_t found;
    int64_t derived; /* of those, how many a repair can rebuild */
};

/* Text is borrowed for the call. */
typedef void finding_each(void *ctx, const struct finding *finding);

/* Looks for what breaks the area's invariants of this depth (CHECK_FULL or CHECK_QUICK), adds to
 * *result, and calls `each` (may be NULL) for the first FINDINGS_SHOWN_MAX of every invariant. */
MUST_CHECK enum err check_area(struct db *db, enum check_area area, unsigned depth,
                               finding_each *each, void *ctx, struct check_result *result);
/* For checks that SQL cannot make: puts in the names of a tenant and of a run or an entity (by
 * number; 0: none), and calls `each`. */
MUST_CHECK enum err finding_show(struct db *db, struct finding finding, int64_t tenant, int64_t run,
                                 finding_each *each, void *ctx);
/* How many rows the area is about. */
MUST_CHECK enum err check_extent(struct db *db, enum check_area area, int64_t *ret);

#endif
