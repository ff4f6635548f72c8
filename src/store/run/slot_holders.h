/* Which runs hold a slot of their tenant, as a condition on the table of runs. */
#ifndef PAWL_STORE_RUN_SLOT_HOLDERS_H
#define PAWL_STORE_RUN_SLOT_HOLDERS_H

/* The runs that hold a slot: those with a status of run_holds_slot() (a test compares the two) that
 * are not part of another run. Spelt with OR, because for a list of IN SQLite builds a temporary
 * table. */
#define RUN_HOLDS_SLOT                                                                        \
    "(parent_run IS NULL AND (status = 'waiting' OR status = 'running' OR status = 'pending'" \
    " OR status = 'paused'))"

#endif
