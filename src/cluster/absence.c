/* Nodes without a session at the database. */
#include "cluster/absence.h"

static struct absence last_of(const struct absences *a, const char *session)
{
    for (size_t i = 0; i < a->count; i++) {
        if (strcmp(a->nodes[i].session, session) == 0)
            return a->nodes[i];
    }
    struct absence unknown = {.since_ms = INT64_MAX};
    (void)snprintf(unknown.session, sizeof(unknown.session), "%s", session);
    return unknown;
}

void absences_note(struct absences *a, const struct cluster_view *view)
{
    struct absences now = {.count = view->node_count};
    for (size_t i = 0; i < view->node_count; i++) {
        struct absence *one = &now.nodes[i];
        *one = last_of(a, view->nodes[i].session);
        one->was_connected |= view->nodes[i].connected;
        if (view->nodes[i].connected || !one->was_connected)
            one->since_ms = INT64_MAX;
        else if (one->since_ms == INT64_MAX)
            one->since_ms = view->mono_ms;
    }
    *a = now;
}

int64_t absences_gone_at(const struct absences *a, const struct cluster_view *view, size_t node)
{
    assert(node < a->count && strcmp(a->nodes[node].session, view->nodes[node].session) == 0);
    int64_t since_ms = a->nodes[node].since_ms;
    bool counts = (int)node != view->self && cluster_node_lives(&view->nodes[node]);
    return counts && since_ms != INT64_MAX ? since_ms + NODE_GONE_MS : INT64_MAX;
}
