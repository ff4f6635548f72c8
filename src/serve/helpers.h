/* Processes that `pawl dev` starts beside the server: this same binary with other commands. They
 * end with the server. */
#ifndef PAWL_SERVE_HELPERS_H
#define PAWL_SERVE_HELPERS_H

enum { HELPER_WORDS_MAX = 8 };

/* Runs `pawl WORDS…`; words end with NULL. A failure is logged: the server works without it. */
void helper_start(const char *const words[static 1]);

#endif
