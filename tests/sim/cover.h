/* What all histories together have reached, and how the present one ended: kept in memory that
 * parent and children share. */
#ifndef PAWL_TESTS_SIM_COVER_H
#define PAWL_TESTS_SIM_COVER_H

#include <stdint.h>
#include <stdio.h>

enum { SIM_EXIT_BROKEN = 40, SIM_EXIT_NO_CUT };

/* Before the first child. */
void cover_setup(void);
void cover_count(const char *kind, const char *what);
/* The history is over: counts each pair of faults that have met in it. */
void cover_pairs(void);
/* 0: never reached. */
uint64_t cover_of(const char *kind, const char *what);
/* Every count of a kind, most frequent first. */
void cover_print(FILE *to, const char *kind);
/* How many different ones of a kind were reached, and how often. */
void cover_print_sum(FILE *to, const char *kind);
/* The pairs of two things of a kind that have never met. */
void cover_print_pairs_missing(FILE *to);

/* --- the end of a history --- */

void cover_failed(int promise, const char *text);
/* "": nothing was written since the last time that it was cleared. */
const char *cover_failure(void);
void cover_clear_failure(void);

/* Of everything that the servers answered, for the process that waits for the history's end. */
void cover_set_digest(uint64_t digest);
uint64_t cover_digest(void);

/* --- the progress of workers --- */

/* Seeds of a variant are handed out from here on. */
void cover_begin_seeds(int variant, uint64_t first);
uint64_t cover_next_seed(int variant);
void cover_count_done(void);
uint64_t cover_done(void);
/* The lowest is kept; 0: none has failed. */
void cover_note_failed_seed(uint64_t seed);
uint64_t cover_failed_seed(void);

#endif
