/* A run as a tree: its status, and under it each step with its attempts, duration and
 * compensation. Every line fits the terminal. */
#ifndef PAWL_CLI_RUN_RUN_TREE_H
#define PAWL_CLI_RUN_RUN_TREE_H

#include "base/json_tree.h"
#include "cli/term/term.h"

struct run_tree {
    const json_t *run;
    const json_t *failures; /* {"step": [event, …]}: attempts that failed; NULL: unknown */
    const struct term *term;
    int64_t now_ms;
    unsigned frame; /* of the picture that shows that a step is running */
};

/* Notes the failed attempt in an event; other events change nothing. */
void run_tree_note(json_t *failures, const json_t *event);

/* Appends the tree. Steps that are done are left out first when it has more lines than rows_max. */
void run_tree_put(struct buf *out, const struct run_tree *tree, size_t rows_max);

/* "order, version 3", and how the run is: for the first line. */
void run_tree_put_head(struct buf *out, const struct run_tree *tree);

#endif
