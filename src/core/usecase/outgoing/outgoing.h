/* Work that leaves the server as an HTTP call, as the writer hands it out and takes its result
 * back. http steps (calls.h) and webhooks (deliveries.h) share these shapes; outbound/outgoing.h
 * makes the calls.
 *
 *   pending ── take ──▶ handed out ── the call ──▶ finish ──▶ done, failed, or pending again
 *
 * A hand-out is numbered, and the result of an older one changes nothing. So a call may be made
 * more than once, always with the same idempotency key or id, and its result counts once. */
#ifndef PAWL_CORE_USECASE_OUTGOING_OUTGOING_H
#define PAWL_CORE_USECASE_OUTGOING_OUTGOING_H

#include "base/limits.h"
#include "core/txn/op.h"

/* What a call belongs to. Calls of the same tenant, webhook or run that are under way at the same
 * time are limited. */
struct outgoing_place {
    int64_t tenant;
    int64_t webhook; /* 0: it is an http step's */
    int64_t run;     /* -1: none */
};

/* One piece of work that was taken. The first member of its kind's own struct, allocated as a
 * whole. */
struct outgoing_job {
    struct outgoing_job *next;
    struct outgoing_place place;
    /* Frees what the kind's own members hold; NULL: nothing. */
    void (*release)(struct outgoing_job *job);
    struct op op; /* brings the result back, with the job as its input */
};

void outgoing_job_free(struct outgoing_job *job);
/* All of a list; it is empty afterwards. */
void outgoing_jobs_free(struct outgoing_job **first);

/* The input of a use case that takes work. */
struct take_outgoing_input {
    size_t room; /* take at most so many */
    struct outgoing_place under_way[CALLS_IN_FLIGHT_MAX];
    size_t under_way_count;
    bool first; /* since the server started: what an earlier one had handed out may be taken */
    struct taken_outgoing *taken;
};

/* Its output. */
struct taken_outgoing {
    struct outgoing_job *first; /* the caller frees them, even if the op failed */
    bool left_some;             /* there may be more once a call under way has ended */
    bool unfinished;            /* not everything was looked at: ask again at once */
    int64_t next_at;            /* when the next one is due; -1: none waits for a time */
    int64_t turn; /* the tenant or webhook that had its turn last; the caller keeps it */
};

#endif
