/* The server's threads as fibers of one thread, under a scheduler and a clock of the simulator's
 * own.
 *
 * The linker gives the server these functions in place of pthread_create(), mutexes, conditions and
 * env_wait_until() (see tests/CMakeLists.txt). A fiber gives way where it locks, unlocks or waits;
 * who runs next is drawn by lot. Time stands still while fibers run. */
#ifndef PAWL_TESTS_SIM_FIBERS_H
#define PAWL_TESTS_SIM_FIBERS_H

#include <stdbool.h>
#include <stdint.h>

/* A number below `below`, from the seed. */
typedef uint64_t fibers_draw(void *ctx, uint64_t below);

/* For the history that begins now; no fiber but the caller exists. A fiber gives way at one lock in
 * `yield_one_in`; 0: only where it has to wait. */
void fibers_begin(int64_t now_ns, uint64_t yield_one_in, fibers_draw *draw, void *ctx);
/* From now on; also while fibers exist. */
void fibers_yield_one_in(uint64_t locks);

int64_t fibers_now_ns(void);
/* Time passes for everybody. */
void fibers_pass_ns(int64_t ns);
/* When the next one runs: now, when one is ready, or when the first sleeper wakes; INT64_MAX: none
 * sleeps for a time. */
int64_t fibers_next_wake_ns(void);

/* The caller waits so long, and others run. */
void fibers_sleep_ns(int64_t ns);
/* When the first of those that sleep so wakes; INT64_MAX: none does. */
int64_t fibers_sleepers_wake_ns(void);

/* The same for one that waits without anybody noticing: no turn of a server waits for its end. */
void fibers_nap_ns(int64_t ns);
/* Waits until ready() says so, which is asked whenever somebody is to run next; ns < 0: for ever.
 * False: the time is over. The simulator itself never waits. */
bool fibers_poll(bool (*ready)(void *ctx), void *ctx, int64_t ns);

/* A fiber belongs to the group of the one that has made it; the simulator enters one and leaves it
 * again, for 0. Fibers of a paused group do not run, while time goes on for them too. */
void fibers_enter_group(int group);
int fibers_group(void);
bool fibers_is_simulator(void);
/* It is in fibers_run(), not in the middle of a server's code, where it may wait for a lock. */
bool fibers_simulator_rests(void);
void fibers_pause(int group, bool pause);
bool fibers_is_paused(int group);
/* The caller, if its group was paused just now, goes on when it is not any more. */
void fibers_stand_still(void);

/* Runs the others until all of them wait for something. */
void fibers_run(void);

/* How often another fiber has begun to run. */
uint64_t fibers_switches(void);
/* How many exist, the caller not counted. */
int fibers_count(void);

#endif
