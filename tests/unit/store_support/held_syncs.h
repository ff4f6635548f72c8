/* Syncs of write-ahead logs that the test holds back, whatever SQLite does meanwhile. */
#ifndef PAWL_TESTS_STORE_SUPPORT_HELD_SYNCS_H
#define PAWL_TESTS_STORE_SUPPORT_HELD_SYNCS_H

/* Once per program, before it opens a store. */
void held_syncs_install(void);

/* Every sync that comes waits, and is done once it may go on. */
void hold_syncs(void);
/* One of them goes on, now or when it comes; the others stay. */
void let_one_sync(void);
void release_syncs(void);
/* Lets them go on and fail, these and all that follow until release_syncs(). */
void fail_syncs(void);
int syncs_waiting(void);
/* Syncs of main files so far. */
int main_file_syncs(void);

#endif
