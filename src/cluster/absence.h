/* Which other nodes have no session at the database any more, and since when: a process that was
 * killed is known by that long before its lease is over. A node that this one has never seen
 * connected may be of an earlier version, which does not show it: only its lease counts. */
#ifndef PAWL_CLUSTER_ABSENCE_H
#define PAWL_CLUSTER_ABSENCE_H

#include "store/postgres/cluster_store.h"

struct absence {
    char session[NODE_SESSION_LEN_MAX + 1];
    bool was_connected;
    int64_t since_ms; /* by the monotonic clock; INT64_MAX: it is connected, or nothing is known */
};

/* Of each node of a view. Zero it before the first one. */
struct absences {
    size_t count;
    struct absence nodes[CLUSTER_NODES_MAX];
};

/* After each reading. */
void absences_note(struct absences *a, const struct cluster_view *view);
/* When the node of the last view is gone, if it does not come back: then its lease can be ended.
 * INT64_MAX: it is there, or its lease is over anyway. */
int64_t absences_gone_at(const struct absences *a, const struct cluster_view *view, size_t node);

#endif
