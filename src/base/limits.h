/* Every limit of pawl in one place, each with its reason. Nothing is unbounded. */
#ifndef PAWL_BASE_LIMITS_H
#define PAWL_BASE_LIMITS_H

/* A table is read by its columns. */
/* clang-format off */
enum {
    KIB = 1024,
    MIB = 1024 * 1024,

    /* --- HTTP --- */
    HTTP_BODY_MAX = 1 * MIB,              /* a run's input is a message, not a file */
    HTTP_HEAD_MAX = 8 * KIB,              /* libmicrohttpd zeroes this per request: 32 KiB costs a quarter */
    HTTP_CONNECTIONS_MAX = 4096,          /* about 10 KiB each while idle */
    HTTP_IDLE_TIMEOUT_S = 75,             /* longer than the usual 60 s of load balancers */
    HTTP_HEAD_TIMEOUT_MS = 10 * 1000,     /* a head fits in one packet; slower is an attack or a dead link */
    HTTP_BODY_TIMEOUT_MS = 30 * 1000,     /* 1 MiB at 280 kbit/s */
    HTTP_REPLY_TIMEOUT_MS = 60 * 1000,    /* a reader that trickles must not hold a buffer for ever */
    HTTP_REQUEST_ARENA_MAX = 4 * MIB,     /* parsed pieces and texts of one request; its answer is not in it */
    HTTP_REPLY_MAX = 8 * MIB,             /* a page of 200 runs with large inputs; any one run fits */
    HTTP_STREAM_STALL_MS = 15 * 1000,     /* a reader that takes nothing for so long is cut off; it comes back where it was */
    HTTP_STREAM_SOCKET_BYTES = 64 * KIB,  /* of one reader in the kernel: a thousand are 64 MiB, not gigabytes */
    HTTP_STREAMS_MAX = 2048,              /* half of the connections: the rest is for those who ask and work */
    HTTP_STREAM_PULSE_MS = 15 * 1000,     /* a comment that often: proxies and dead links are noticed */
    HTTP_QUERY_PARAMS_MAX = 16,
    HTTP_REPLY_HEADERS_MAX = 12,

    /* --- JSON --- */
    JSON_DEPTH_MAX = 64,                  /* deeper is a mistake or an attack; recursion stays small */
    JSON_TEXT_MAX = HTTP_BODY_MAX,
    JSON_KEPT_MAX = 2 * JSON_TEXT_MAX,    /* of one value as it is kept */
    JSON_WRITTEN_MAX = 5 * JSON_TEXT_MAX, /* what was read, written again: `1e20,` grows to 24 bytes */

    /* --- names --- */
    TENANT_ID_MAX = 64,
    ACTOR_MAX = 128,
    NAME_MAX_LEN = 128,                   /* workflows, steps, queues, handlers */
    TEXT_MAX = 1024,                      /* names and descriptions for people */
    IDEM_KEY_MAX = 255,                   /* characters: the contract's */
    IDEM_KEY_BYTES_MAX = 4 * IDEM_KEY_MAX,
    ROUTE_MAX = 2 * KIB,                  /* method and path as kept with an idempotency key; another key may be in it */
    LABELS_MAX = 32,
    LABEL_VALUE_MAX = 256,

    /* --- definitions --- */
    DEFINITION_MAX = 256 * KIB,           /* thousands of lines; it is cached in memory */
    STEPS_MAX = 500,                      /* a run loads all its steps at each change */
    MAP_PARALLEL_DEFAULT = 256,           /* open items of a step with for_each: their jobs are made together */
    MAP_ITEMS_MAX = 10 * 1000,            /* the contract's */
    MAP_ITEMS_PER_TURN_MAX = 256,         /* jobs that are made in one go, before others have their turn */
    CHILD_DEPTH_MAX = 10,                 /* a workflow that calls itself must come to an end */
    PROGRESS_TEXT_MAX = 64 * KIB,         /* STEPS_MAX steps with every number in full */
    RETRY_BACKOFF_MS_DEFAULT = 1000,
    RETRY_BACKOFF_MS_MAX_DEFAULT = 5 * 60 * 1000,
    SIGNAL_NAMES_MAX = 100,               /* that one step waits for */
    LIMITS_PER_RUN_MAX = 4,               /* besides the tenant's: each costs a start three rows */
    DEFINITION_FAULTS_MAX = 50,           /* enough to mend a file in one go */
    DEFINITION_CACHE_MAX = 256,           /* parsed definitions kept by the writer */
    REGEX_SIZE_MAX = 8 * KIB,             /* instructions and ranges of one pattern: .{1,4000}, or \p{L} ten times */
    REGEX_DEPTH_MAX = 64,                 /* groups within groups: recursion stays small */
    SCHEMA_PATTERNS_MAX = 64 * KIB,       /* the sizes of a schema's patterns together: 2 MiB while a value is checked */
    SCHEMA_DEPTH_MAX = 1000,              /* schemas that judge one value inside each other: fifteen for each level of JSON; half a megabyte of stack */
    SCHEMA_WORK_MAX = 4 * 1000 * 1000,    /* steps of checking one value, 0.2 s at worst: anyOf multiplies, so the value's size is no bound */

    /* --- entities --- */
    ENTITY_ID_MAX = 200,                  /* bytes: an address, a URL, any id of another system */
    ENTITY_STATE_MAX = 256 * KIB,         /* it is written with every answer, and kept with every generation */
    ENTITY_TIMERS_MAX = 100,              /* of one entity: they are all in each record of a roll-over */
    ENTITY_TIMER_PAYLOAD_MAX = 4 * KIB,   /* a reminder of what it was for; the rest is in the state */
    ENTITY_EMITS_MAX = 100,               /* of one answer; likewise the runs that it starts */
    ENTITY_BATCH_BYTES_MAX = 512 * KIB,   /* of signals in one call, unless one alone is larger */
    ENTITY_EVENT_PAYLOAD_MAX = 4 * KIB,   /* larger ones are not repeated in the timeline */
    ENTITY_UPDATE_RESULT_MAX = 64 * KIB,  /* kept as long as the update's key is known */
    ENTITY_SWEEP_ROWS_PER_TURN_MAX = 500, /* removed in one go, before others have their turn */
    DEDUP_EVICTED_PER_KEY_MAX = 1000,     /* one arrival after a quiet month must not hold up the writer */
    DEDUP_STATS_PENDING_MAX = 1024,       /* entity types whose counts wait for the next sweep */
    RUN_SIGNALS_WAITING_MAX = 10 * 1000,  /* in one run, for steps that have not begun: as many as a map has items */

    /* --- expressions --- */
    EXPR_SOURCE_MAX = 4 * KIB,            /* longer belongs in a worker */
    EXPR_WORDS_MAX = 250,                 /* names, numbers and texts of one: Lua 5.4.4 compiles functions of more than 255 constants wrongly */
    EXPR_STEPS_MAX = 200 * 1000,          /* of one condition or one filled value: a tenth of a second at worst, usually a millisecond */
    EXPR_MEMORY_MAX = 16 * MIB,           /* likewise, garbage included: a few copies of the largest text, or 100,000 small values */
    CPU_STEPS_PER_TURN = 50 * 1000,       /* of all expressions of a tenant in one transaction; the rest goes on in slices. A few hundred usual ones */
    CPU_STEPS_PER_ITEM = 150,             /* what a job of a map counts as: some 300 of one tenant in one transaction, over all its runs; no pause follows */
    CPU_PAUSE_FACTOR = 4,                 /* after a slice the tenant pauses so many times as long as it took: at most a fifth of the writer's time */
    CPU_PUT_OFF_MS_MAX = 60 * 1000,       /* how far apart the first and the last of many are put off; then they come together and are put off again */
    EXPR_CACHE_MAX = 256,                 /* compiled expressions kept by each thread */
    EXPR_CACHE_BYTES_MAX = 4 * MIB,       /* and what they may weigh together: a hostile one is fifty times its text */

    /* --- the commit loop --- */
    OPS_WAITING_MAX = 8192,               /* twice the connections: past it callers get 503 */
    OPS_BYTES_MAX = 64 * MIB,             /* bodies waiting for the writer, all together */
    OP_BYTES_MAX = 256 * MIB,             /* that one operation may load: past it the operation is refused, not the server short of memory */
    EFFECTS_BYTES_MAX = 256 * MIB,        /* effects that wait to be published: one op of a batch may make as many as it may load */
    RUN_BYTES_PER_TURN_MAX = 32 * MIB,    /* loaded while a run goes on: the rest in a turn of its own, and what one step needs still fits */
    BODY_ON_LOOP_MAX = 16 * KIB,          /* read on the HTTP loop itself, in half a millisecond; larger ones are read beside it: 40 ms for 1 MiB */
    BODIES_PER_TENANT_BYTES_MAX = 32 * MIB, /* large bodies of one tenant that wait to be read: half of OPS_BYTES_MAX, the rest is for the others */
    INLINE_BYTES_MAX = 64 * KIB,          /* of a change that the HTTP loop makes itself: larger ones take long to check */
    OPS_PER_COMMIT_MAX = 512,             /* one fsync's worth: keeps a commit short */
    OP_WAIT_MS_MAX = 10 * 1000,           /* then the caller is told to ask again */
    WAL_CHECKPOINT_PAGES = 4000,          /* measured: p99 of a commit stays under a millisecond */
    WAL_PAGES_MAX = 64 * 1024,            /* 256 MiB: past it writes are refused until it can shrink */
    PUT_ASIDE_MS = 60 * 1000,             /* what cannot be done waits, and twice as long each time, up to an hour: it needs a person, not the writer's time */
    TIMERS_PER_TURN_MAX = 256,            /* due timers share the writer with callers */
    TIMERS_SEARCHED_MAX = 8192,           /* of a tenant with a backlog, passed over in one turn for those of others: two milliseconds */
    TIMERS_LATEST_SEARCHED_MAX = 2048,    /* of the latest that are due, looked at first: a small tenant's timer is usually there */
    TIMERS_SINGLED_OUT_MAX = 64,          /* of tenants behind that backlog, fired in the same turn */
    TIMERS_SINGLED_OUT_TENANT_MAX = 8,    /* of one such tenant */
    TIMERS_ROWS_PER_TURN_MAX = 4000,      /* rows that they change: some 20 ms of the writer, counted in rows so that it does not depend on the machine */
    TIMERS_BYTES_PER_TURN_MAX = 16 * MIB, /* of what they load: many large ones must not run a turn out of memory */
    LATE_INDEX_ROWS = 2048,               /* rows that are indexed together: a few milliseconds of work */
    DAMAGED_PASSED_MAX = 16,              /* damaged jobs that a claim passes over; more are a damaged file */
    ROWS_PER_SLICE = 64,                  /* rows of a search that may end early, fetched at once: an engine across a network fetches all that a query finds */
    HOLDERS_PASSED_MAX = 64,              /* runs of others that a search for holders passes over, again and again */
    EVICT_PER_TURN_MAX = 256,             /* likewise old idempotency keys */
    READERS = 2,                          /* threads that answer GETs beside the HTTP loop */
    READS_WAITING_MAX = 1024,
    DOCTOR_MS_MAX = 10 * 60 * 1000,       /* a look at every row */
    READ_MS_MAX = 5 * 1000,               /* a query that takes longer is cut off: it pins the WAL */

    /* --- subscriptions --- */
    STREAM_EVENTS_MAX = 100,              /* read in one go for one subscriber, or for all that have come as far */
    STREAM_BYTES_MAX = 256 * KIB,         /* likewise, and one event more */
    STREAM_SCAN_MAX = 4096,               /* rows of the feed looked at in one go: most are of other tenants */
    STREAM_WINDOW_BYTES = 256 * KIB,      /* newest events of one tenant or run, kept for those who listen to it */
    STREAM_READS_MAX = 32,                /* at once, of subscriptions that are behind: other questions have room */
    STREAM_LISTENERS_PER_MS = 50,         /* a thousand are told at most every 20 ms: half of the loop's time at worst */

    /* --- pages --- */
    PAGE_DEFAULT = 50,
    PAGE_MAX = 200,
    PAGE_BYTES_MAX = 4 * MIB,             /* then a page ends early: the rest of HTTP_REPLY_MAX holds any one row */
    PAGE_SCAN_MAX = 20000,                /* rows looked at for one page when a filter is rare */

    /* --- work --- */
    CLAIM_MAX = 100,                      /* jobs handed out in one call */
    HANDED_BYTES_MAX = CLAIM_MAX * 128,   /* what is noted of each job that one call hands out */
    CLAIM_QUEUES_MAX = 16,
    CLAIM_WAIT_MS_MAX = 30 * 1000,
    CLAIM_LOOK_MS = 1000,                 /* so often callers that wait are looked at whether they are still there */
    RUN_WAIT_MS_MAX = 60 * 1000,
    ASK_WAIT_MS_DEFAULT = 10 * 1000,      /* most handlers answer within it, and no proxy gives up before */
    LEASE_MS_MIN = 100,
    LEASE_MS_MAX = 12 * 3600 * 1000,
    LEASE_MS_DEFAULT = 30 * 1000,
    SLEEP_DAYS_MAX = 3660,                /* ten years */
    BULK_RUNS_MAX = 200,                  /* runs changed by one call: all in one commit */
    RETENTION_ROWS_PER_TURN_MAX = 512,    /* removed in one slice: a millisecond or two */
    RETENTION_RUNS_PER_TURN_MAX = 256,    /* looked at in one slice */
    RETENTION_PAUSE_MS = 60 * 1000,       /* after the last run that was old enough */
    REMINDERS_MAX = 100,                  /* of one approval: after that many it is not a matter of forgetting */
    APPROVAL_STATS_DAYS_DEFAULT = 30,
    APPROVAL_STATS_DAYS_MAX = 366,
    APPROVAL_STATS_ROWS_MAX = 20 * 1000,  /* approvals that one analysis looks at: some tens of milliseconds */
    APPROVAL_STATS_WORKFLOWS_MAX = 100,   /* workflows that are shown one by one */
    SCHEDULES_PER_TURN_MAX = 64,          /* due times share the writer with callers */
    SCHEDULE_CATCH_UP_S_MAX = 30 * 86400,
    POSTPONED_MS = 60 * 1000,             /* what cannot be done now is looked at again after that time */
    HEARTBEAT_NOTE_MAX = 64 * KIB,
    FINISH_ITEMS_MAX = 100,               /* results in one call */
    PRIORITY_MIN = -100,
    PRIORITY_MAX = 100,
    POLLS_KEPT_MAX = 4096,                /* workers and queues whose last poll is remembered: 1.4 MiB */
    POLLED_LATELY_MS = 60 * 1000,         /* twice CLAIM_WAIT_MS_MAX: a worker that waits has polled lately */
    QUEUE_TIMERS_MAX = 10 * 1000,         /* leases and delays looked at to count those of a tenant's queues: 30 ms */
    QUEUE_READY_MAX = 10 * 1000,          /* jobs of one queue that are counted out */
    QUEUE_OLDEST_MAX = 1000,              /* and those among which the oldest is looked for */
    QUEUES_PASSED_MAX = 1000,             /* queues of others that one page passes over */
    ATTEMPTS_KEPT_MAX = 20,               /* of those of a job that were lost: the first and the newest */
    ATTEMPT_ERROR_MAX = 4 * KIB,          /* kept with each of them, and in the timeline; the job has the last one whole */
    ATTEMPT_MESSAGE_MAX = 2 * KIB,        /* what is left of the message of a longer one */
    ATTEMPTS_TEXT_MAX = 1 * MIB,          /* ATTEMPTS_KEPT_MAX of them, however their text is written */
    JOB_OUTPUT_MAX = 512 * KIB,           /* outputs of earlier steps travel with the run */

    /* --- calls out --- */
    CALLS_IN_FLIGHT_MAX = 64,             /* each may hold a whole response: 64 MiB at worst */
    CALLS_PER_TENANT_MAX = 32,            /* of http steps: half of it, so that slow receivers of one tenant do not stop the others */
    CALLS_WAITING_MAX = 1024,             /* submitted and not begun */
    CALLS_TAKEN_PER_TURN_MAX = 32,        /* jobs handed out in one go, before others have their turn */
    CALL_RESPONSE_MAX = 1 * MIB,          /* a message, as HTTP_BODY_MAX; more is aborted on its way */
    CALL_HEAD_MAX = 64 * KIB,             /* of a response, all header lines together */
    CALL_HEADERS_KEPT_MAX = 16 * KIB,     /* of those in a step's output; what is past it is left out */
    CALL_OUTPUT_MAX = CALL_RESPONSE_MAX + 64 * KIB, /* the response as JSON: half of PAGE_BYTES_MAX holds it with its run */
    CALL_EXCERPT_MAX = 2 * KIB,           /* of a response that is no success, kept with the error */
    CALL_REDIRECTS_MAX = 5,
    CALL_CONNECT_MS_MAX = 10 * 1000,      /* three lost SYNs */
    CALL_TIMEOUT_MS_DEFAULT = 30 * 1000,
    CALL_TIMEOUT_MS_MAX = 10 * 60 * 1000, /* it holds one of few places: longer work answers 202 and sends a signal */
    CALL_GRACE_MS = 5 * 1000,             /* from the end of a call's time to the end of its lease: the commit of its result */
    CALL_DRAIN_MS = 5 * 1000,             /* a server that stops waits so long for calls under way, then gives their jobs back */
    CALL_CONNECTIONS_KEPT_MAX = 32,       /* idle ones */
    CALL_CONNECTION_AGE_S = 30,           /* idle for longer than that: the other side may be about to close it */
    CALL_RESOLVER_MS_MAX = 30 * 1000,     /* libc's resolver gives up after about that time, and cannot be stopped */
    RETRY_AFTER_MS_MAX = 24 * 3600 * 1000, /* what a receiver may ask for: as the longest backoff */

    /* --- webhooks --- */
    WEBHOOKS_PER_TENANT_MAX = 20,         /* each event may become a row for every one of them */
    WEBHOOK_EVENTS_MAX = 32,              /* patterns of one */
    WEBHOOK_URL_MAX = 2 * KIB,            /* what servers take in general */
    WEBHOOK_IN_FLIGHT_MAX = 4,            /* to one receiver that is well; one that is not gets one at a time */
    WEBHOOKS_TENANT_IN_FLIGHT_MAX = 16,   /* a quarter of CALLS_IN_FLIGHT_MAX */
    WEBHOOK_TIMEOUT_MS = 15 * 1000,       /* Standard Webhooks: 15 to 30 s */
    WEBHOOK_LEASE_MS = 30 * 1000,         /* of a delivery that is being sent: its time-out, a wait for a place and the commit of its result */
    WEBHOOK_OLD_SECRET_S = 24 * 3600,     /* a secret that was replaced signs too for a day, unless said otherwise */
    WEBHOOK_OLD_SECRET_S_MAX = 7 * 24 * 3600,
    WEBHOOK_FAILING_MS_MAX = 5 * 24 * 3600 * 1000, /* longer than the retries of one delivery take */
    WEBHOOK_LOOKED_AT_MAX = 32,           /* due deliveries of one webhook that are looked at for those that may go now */
    WEBHOOKS_PER_TURN_MAX = 256,          /* webhooks that are asked for due deliveries in one go */
    DELIVERIES_TAKEN_PER_TURN_MAX = 32,   /* as CALLS_TAKEN_PER_TURN_MAX */
    DELIVERY_BODY_MAX = 256 * KIB,        /* of an event with more, the data are left out: receivers read the run */
    DELIVERIES_KEPT_MAX = 10 * 1000,      /* in the log of one webhook, besides those that wait */
    DELIVERY_KEPT_MS = 7 * 24 * 3600 * 1000,
    DELIVERIES_WAITING_MAX = 100 * 1000,  /* then a webhook is disabled: about 100 MiB of rows that its receiver does not take */
    DELIVERIES_SWEPT_PER_TURN_MAX = 512,  /* looked at in one slice: a millisecond or two */
    DELIVERIES_SWEEP_PAUSE_MS = 60 * 1000,
    FAN_OUT_FEED_PER_TURN_MAX = 4096,     /* rows of the feed passed over in one slice: most are of tenants without webhooks */
    FAN_OUT_PER_TURN_MAX = 512,           /* deliveries made in one slice */
    FAN_OUT_PAUSE_MS = 10,                /* between slices, so that they do not double the number of commits */

    /* --- the relay to the bus --- */
    RELAY_WINDOW_MESSAGES = 1024,         /* read ahead of what is acknowledged */
    RELAY_WINDOW_BYTES = 8 * MIB,         /* likewise: one more of any size may be in it */
    RELAY_WINDOW_STUBS = 4096,            /* rows that are noted and not read yet, behind long timelines */
    RELAY_LANE_MAX = 64,                  /* messages of one run in the window: sixteen such runs do not hold up the others */
    RELAY_BATCH_MAX = 256,                /* sent before the first acknowledgement is waited for */
    RELAY_MARK_MS = 50,                   /* how far it has come is written that often at most: so much is sent twice after a crash */
    RELAY_AGAIN_MAX = 32,                 /* parked messages that are tried again in one go */
    RELAY_NOTES_MAX = 1024,               /* messages on their way to be parked: past it the relay waits for the writer */
    RELAY_ATTEMPTS_MAX = 5,               /* of a message that is not acknowledged although others are: then it is parked */
    RELAY_BACKOFF_MS = 50,
    RELAY_BACKOFF_MS_MAX = 2 * 1000,      /* a server that is back is noticed within that time */
    FEED_KEPT_MS = 3 * 86400 * 1000,      /* for those who come back: a subscriber, a bus that is added later */
    FEED_SWEPT_PER_TURN_MAX = 1000,       /* rows removed in one slice: a millisecond or two */
    FEED_SWEEP_PAUSE_MS = 60 * 1000,      /* after the last row that was old enough */
    FEED_HELD_RUNS_MAX = 8192,            /* runs that a relay is behind with: past it no run is removed until it has caught up */
    BUS_QUEUES_MAX = 64,                  /* whose jobs are offered on the bus */

    /* --- admission --- */
    QUEUED_RUNS_MAX = 1000 * 1000,        /* of a tenant that sets no max_queued_runs: about 1 GiB of rows */
    CANCELLED_PER_START_MAX = 100,        /* by cancel_oldest, after a limit was lowered: all in one commit */
    COALESCE_SCAN_MAX = 1000,             /* active runs looked at for one of the same workflow */
    DISPATCHED_PER_OP_MAX = 16,           /* queued runs that start with the change that made room */
    DISPATCHED_PER_TURN_MAX = 64,         /* the rest start in slices, shared between tenants */
    LINES_PER_TURN_MAX = 256,             /* lines of queued runs looked at in one slice */
    WHY_JOBS_MAX = 50,                    /* open jobs that are named */
    WHY_HOLDERS_MAX = 20,                 /* holders of slots that are named */
    WHY_PLACE_MAX = 100 * 1000,           /* a place further back is only said to be at least this */
    SETTINGS_KEPT_MAX = 100,              /* earlier settings of a tenant that can be gone back to */
    CHECK_EVERY_MS = 5 * 60 * 1000,       /* slots are recounted that often while the server runs */
    CHECK_MS_MAX = 2 * 1000,              /* and for so long at most */
    FINDINGS_SHOWN_MAX = 100,             /* of each kind that the doctor names; all are counted */

    /* --- metrics --- */
    METRIC_TENANTS_MAX = 1000,            /* the contract's: the rest share `other` */
    METRIC_QUEUES_MAX = 1000,             /* as many queues as tenants */
    METRICS_REST = 9,                     /* times as long as making the text took: a tenth of one processor at most */
    METRICS_REST_MS_MAX = 1000,           /* scrapers do not wait longer than that for it */
    METRIC_SERIES_MAX = 8192,             /* per family */

    /* --- keys and caches --- */
    API_KEY_TEXT_MAX = 128,
    LOGIN_FAILURES_BURST = 100,           /* of one address: a fleet behind one address restarts with an old key */
    LOGIN_FAILURES_PER_S = 10,            /* and then: a person or a script that retries hardly notices */
    LOGIN_PEERS_MAX = 4096,               /* addresses that are remembered: 96 KiB */
    LOGIN_LOG_MS = 10 * 1000,             /* failed logins are a line in the log that often at most */
    ROOT_KEY_MIN = 32,                    /* characters: 128 bits when they are hexadecimal */
    ROOT_KEY_DISTINCT_MIN = 8,            /* of them: 32 random hexadecimal digits have fewer once in 25 million keys */
    AUTH_CACHE_MAX = 4096,
    LAST_USED_GRAIN_MS = 60 * 1000,       /* a key's last use is kept to the minute, not to the request */
    IDEM_STATS_PENDING_MAX = 4096,        /* replay counts that wait for the next commit */
    IDEM_STATS_FLUSH_MS = 1000,
};
/* clang-format on */

#endif
