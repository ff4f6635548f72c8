/* Nodes that stand still, die in the middle of something, or lose the database or its answers. */
#include "sim/nodes/nodes.h"
#include "sim/actions.h"
#include "sim/nodes/pg.h"

static struct nodes *nodes_of(struct sim *w)
{
    return w->places[0].nodes;
}

static struct sim_node *any_node(struct sim *w)
{
    struct nodes *nodes = nodes_of(w);
    return &nodes->nodes[lot_below(&w->lot, nodes->count)];
}

/* Most of what can go wrong goes wrong at the node that serves. */
static struct sim_node *likely_owner(struct sim *w)
{
    struct nodes *nodes = nodes_of(w);
    int group = pg_owner_of(lot_below(&w->lot, NODES_SHARDS));
    for (int i = 0; i < nodes->count && lot_percent(&w->lot, 70); i++) {
        if (nodes->nodes[i].up && nodes->nodes[i].group == group)
            return &nodes->nodes[i];
    }
    return any_node(w);
}

static void tell(struct sim *w, const struct sim_node *n, const char *what)
{
    sim_cover(w, "fault", what);
    sim_tell(w, "  node %s: %s", n->name, what);
}

static void stand_still(struct sim *w)
{
    struct sim_node *n = likely_owner(w);
    if (!n->up || n->paused)
        return;
    sim_node_pause(n, true);
    tell(w, n, "a node stands still");
}

static void go_on(struct sim *w)
{
    struct sim_node *n = any_node(w);
    if (!n->up || !n->paused || n->dies)
        return;
    sim_node_pause(n, false);
    tell(w, n, "a node goes on");
}

static void arm(struct sim *w, enum pg_fault fault, bool dies, const char *what)
{
    struct sim_node *n = likely_owner(w);
    if (!n->up || n->paused)
        return;
    n->fault = fault;
    n->fault_in = (int)lot_between(&w->lot, 1, 60);
    n->dies = dies;
    tell(w, n, what);
}

static void stand_still_soon(struct sim *w)
{
    bool before = lot_percent(&w->lot, 50);
    arm(w, before ? PG_PAUSE_BEFORE : PG_PAUSE_AFTER, false, "a node stands still at a command");
}

static void die_soon(struct sim *w)
{
    bool before = lot_percent(&w->lot, 50);
    arm(w, before ? PG_PAUSE_BEFORE : PG_PAUSE_AFTER, true, "a node is killed at a command");
}

static void lose_connection_soon(struct sim *w)
{
    static const enum pg_fault FAULTS[] = {PG_LOST_BEFORE, PG_LOST_AFTER, PG_GHOST};
    arm(w, FAULTS[lot_below(&w->lot, (int)ARRAY_LEN(FAULTS))], false,
        "a connection breaks at a command");
}

static void lose_database(struct sim *w)
{
    struct sim_node *n = likely_owner(w);
    if (!n->up || n->paused)
        return;
    bool away = lot_percent(&w->lot, 50);
    pg_set_node_away(n->group, away);
    tell(w, n, away ? "a node cannot reach the database" : "a node can reach the database");
}

static void restart_database(struct sim *w)
{
    bool away = lot_percent(&w->lot, 40);
    pg_set_away(away);
    tell(w, &nodes_of(w)->nodes[0], away ? "the database is away" : "the database is there");
}

/* Leases are not reckoned by it. */
static void jump_clock(struct sim *w)
{
    struct sim_node *n = any_node(w);
    n->skew_us += lot_between(&w->lot, -600 * 1000, 600 * 1000) * 1000;
    tell(w, n, "the clock of a node jumps");
}

static const struct action ACTIONS[] = {
    {"a node stands still", 8, NEEDS(ON_NODES) | NEEDS(ON_KILLS), stand_still},
    {"a node stands still soon", 8, NEEDS(ON_NODES) | NEEDS(ON_KILLS), stand_still_soon},
    {"a node goes on", 20, NEEDS(ON_NODES) | NEEDS(ON_KILLS), go_on},
    {"a node is killed soon", 4, NEEDS(ON_NODES) | NEEDS(ON_KILLS), die_soon},
    {"a connection to the database breaks", 10, NEEDS(ON_NODES) | NEEDS(ON_NETWORK),
     lose_connection_soon},
    {"a node loses the database", 6, NEEDS(ON_NODES) | NEEDS(ON_NETWORK), lose_database},
    {"the database goes or comes", 6, NEEDS(ON_NODES) | NEEDS(ON_STOPS), restart_database},
    {"the clock of a node jumps", 4, NEEDS(ON_NODES), jump_clock},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_NODES = {.name = "nodes", .actions = ACTIONS};
