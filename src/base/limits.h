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
    HTTP_BODY_DISCARD_MAX = 16 * MIB,     /* a larger body is read and discarded up to here, so that its client reads the answer */
    HTTP_HEAD_MAX = 16 * KIB,             /* the request line at its longest, and as much for the fields */
    HTTP_LINE_MAX = 8 * KIB,              /* of the request line or a field, with its end: RFC 9112 recommends 8000 */
    HTTP_METHOD_MAX = 32,                 /* the longest registered one has 17 characters */
    HTTP_FIELDS_MAX = 100,                /* browsers behind two proxies send 40 */
    HTTP_EMPTY_LINES_MAX = 4,             /* before a request: RFC 9112 asks for one */
    HTTP_CHUNK_LINE_MAX = 256,            /* a chunk's size and its extensions, which nobody uses */
    HTTP_CHUNK_EXTENSIONS_MAX = 4 * KIB,  /* of one body: many small chunks must not carry many times their data */
    HTTP_TRAILERS_MAX = 4 * KIB,          /* they are checked and dropped */
    HTTP_READ_MIN = 4 * KIB,              /* memory of a request when it begins: most fit whole */
    HTTP_CONNECTIONS_MAX = 16 * KIB,      /* of one server: some 150 bytes each while idle */
    HTTP_CONNECTIONS_PER_PEER_MAX = 12 * KIB, /* of one address, which may be a proxy in front of everybody */
    HTTP_CONNECTIONS_PER_TENANT_MAX = 12 * KIB, /* more than may wait and stream at once; the rest is for the others */
    HTTP_FILES_RESERVED = 128,            /* descriptors that connections leave for everything else */
    HTTP_RATE_MIN = 4 * KIB,              /* bytes a second: slower senders and readers are cut off after the grace */
    HTTP_BODY_GRACE_MS = 10 * 1000,       /* a link that recovers from lost packets */
    HTTP_LINGER_MS = 2 * 1000,            /* a refused client that still sends gets this long to read why */
    HTTP_DROPS_LOG_MS = 10 * 1000,        /* how often dropped connections are logged at most */
    HTTP_SWEEP_MS = 250,                  /* how late a slow client may be cut off */
    HTTP_ACCEPTS_PER_TURN_MAX = 64,       /* before those that are connected get their turn */
    HTTP_HANDSHAKES_PER_TURN_MAX = 8,     /* of TLS: each costs up to a millisecond, with a key of RSA */
    HTTP_EVENTS_PER_TURN_MAX = 256,       /* connections that are served before other work gets its turn */
    HTTP_REQUESTS_PER_TURN_MAX = 16,      /* of one connection that sends them ahead of the answers */
    HTTP_GATHER_MAX = 16 * KIB,           /* small pieces of a stream that are sent at once */
    HTTP_IDLE_TIMEOUT_S = 75,             /* longer than the usual 60 s of load balancers */
    HTTP_HEAD_TIMEOUT_MS = 10 * 1000,     /* a head fits in one packet; slower is an attack or a dead link */
    HTTP_REQUEST_ARENA_MAX = 4 * MIB,     /* parsed values and texts of one request, without its response */
    HTTP_REPLY_MAX = 8 * MIB,             /* a page of 200 runs with large inputs; any one run fits */
    HTTP_STREAM_STALL_MS = 15 * 1000,     /* a client that reads nothing for so long is disconnected; it can resume */
    HTTP_STREAM_SOCKET_BYTES = 64 * KIB,  /* kernel buffer of one client: a thousand take 64 MiB, not gigabytes */
    HTTP_STREAMS_MAX = 4096,              /* a quarter of the connections: the rest is for requests and workers */
    HTTP_STREAMS_PER_PEER_MAX = 3072,     /* of one address, which may be a proxy in front of most */
    HTTP_STREAMS_PER_TENANT_MAX = 2048,   /* half of them: one tenant's viewers do not shut out the others */
    WAITING_PER_TENANT_MAX = 8 * KIB,     /* requests that wait, half of the connections: a fleet's workers fit */
    HTTP_STREAM_PULSE_MS = 15 * 1000,     /* a comment this often keeps proxies from closing the stream and reveals dead links */
    HTTP_QUERY_PARAMS_MAX = 16,
    HTTP_REPLY_HEADERS_MAX = 12,
    TRACESTATE_BYTES_MAX = 4 * KIB,       /* W3C: pass on at least 512; it is stored with the run */

    /* --- JSON --- */
    JSON_DEPTH_MAX = 64,                  /* deeper is a mistake or an attack; recursion stays small */
    JSON_KEPT_DEPTH_MAX = 2048,           /* of what pawl has written: a value within lists and objects of its own; earlier versions read as deep */
    JSON_TEXT_MAX = HTTP_BODY_MAX,
    JSON_KEPT_MAX = 2 * JSON_TEXT_MAX,    /* of one value as it is kept */
    TIMELINE_ROW_BYTES = 64 * KIB,        /* events of one owner share a row up to about this: a page of a timeline reads whole rows */
    FIRST_EVENTS_BYTES_MAX = 4 * KIB,     /* of events in the row of their run, which is written again with each change of the run */
    JSON_WRITTEN_MAX = 5 * JSON_TEXT_MAX, /* what was parsed, serialized again: `1e20,` grows to 24 bytes */

    /* --- names --- */
    TENANT_ID_MAX = 64,
    ACTOR_MAX = 128,
    NAME_MAX_LEN = 128,                   /* workflows, steps, queues, handlers */
    TEXT_MAX = 1024,                      /* names and descriptions for people */
    IDEM_KEY_MAX = 255,                   /* characters: the contract's */
    IDEM_KEY_BYTES_MAX = 4 * IDEM_KEY_MAX,
    ROUTE_MAX = 2 * KIB,                  /* method and path as stored with an idempotency key; the path may contain another key */
    LABELS_MAX = 32,
    LABEL_VALUE_MAX = 256,

    /* --- definitions --- */
    DEFINITION_MAX = 256 * KIB,           /* thousands of lines; it is cached in memory */
    STEPS_MAX = 500,                      /* a run loads all its steps at each change */
    MAP_PARALLEL_DEFAULT = 256,           /* open items of a step with for_each: their jobs are created together */
    MAP_ITEMS_MAX = 10 * 1000,            /* the contract's */
    MAP_ITEMS_PER_TURN_MAX = 256,         /* jobs created at once, before other work gets its turn */
    CHILD_DEPTH_MAX = 10,                 /* a workflow that calls itself must come to an end */
    PROGRESS_TEXT_MAX = 64 * KIB,         /* STEPS_MAX steps with every number in full */
    RETRY_BACKOFF_MS_DEFAULT = 1000,
    RETRY_BACKOFF_MS_MAX_DEFAULT = 5 * 60 * 1000,
    SIGNAL_NAMES_MAX = 100,               /* names that one step waits for */
    LIMITS_PER_RUN_MAX = 4,               /* besides the tenant's limit: each costs a start three rows */
    DEFINITION_FAULTS_MAX = 50,           /* enough to fix a file in one pass */
    DEFINITION_CACHE_MAX = 256,           /* parsed definitions kept by the writer */
    REGEX_SIZE_MAX = 8 * KIB,             /* instructions and ranges of one pattern: .{1,4000}, or \p{L} ten times */
    REGEX_DEPTH_MAX = 64,                 /* groups within groups: recursion stays small */
    SCHEMA_PATTERNS_MAX = 64 * KIB,       /* the sizes of a schema's patterns together: 2 MiB while a value is checked */
    SCHEMA_DEPTH_MAX = 1000,              /* nested schemas that check one value: fifteen for each level of JSON; half a megabyte of stack */
    SCHEMA_WORK_MAX = 4 * 1000 * 1000,    /* steps to check one value, 0.2 s at worst: anyOf multiplies, so limiting the value's size is not enough */

    /* --- entities --- */
    ENTITY_ID_MAX = 200,                  /* bytes: an address, a URL, any id of another system */
    ENTITY_STATE_MAX = 256 * KIB,         /* it is written with every result, and stored with every generation */
    ENTITY_TIMERS_MAX = 100,              /* of one entity: they are all in each record of a roll-over */
    ENTITY_TIMER_PAYLOAD_MAX = 4 * KIB,   /* a reminder of what it was for; the rest is in the state */
    ENTITY_EMITS_MAX = 100,               /* events of one result, and runs that it starts */
    ENTITY_BATCH_BYTES_MAX = 512 * KIB,   /* of signals in one call, unless one alone is larger */
    ENTITY_EVENT_PAYLOAD_MAX = 4 * KIB,   /* larger ones are not repeated in the timeline */
    ENTITY_UPDATE_RESULT_MAX = 64 * KIB,  /* kept as long as the update's key is known */
    ENTITY_SWEEP_ROWS_PER_TURN_MAX = 500, /* rows removed at once, before other work gets its turn */
    DEDUP_EVICTED_PER_KEY_MAX = 1000,     /* one signal after a quiet month must not block the writer */
    DEDUP_STATS_PENDING_MAX = 1024,       /* entity types whose counts wait for the next sweep */
    RUN_SIGNALS_WAITING_MAX = 10 * 1000,  /* in one run, for steps that have not begun: as many as a map has items */

    /* --- expressions --- */
    EXPR_SOURCE_MAX = 4 * KIB,            /* longer belongs in a worker */
    EXPR_WORDS_MAX = 250,                 /* names, numbers and texts of one: Lua 5.4.4 compiles functions of more than 255 constants wrongly */
    EXPR_STEPS_MAX = 200 * 1000,          /* of one condition or one filled value: a tenth of a second at worst, usually a millisecond */
    EXPR_MEMORY_MAX = 16 * MIB,           /* of one evaluation, garbage included: a few copies of the largest text, or 100,000 small values */
    CPU_STEPS_PER_TURN = 50 * 1000,       /* of all expressions of a tenant in one transaction; the rest continues in slices. A few hundred typical ones */
    CPU_STEPS_PER_ITEM = 150,             /* cost of one job of a map: about 300 of one tenant in one transaction, over all its runs; no pause follows */
    CPU_PAUSE_FACTOR = 4,                 /* after a slice the tenant pauses this many times as long as the slice took: at most a fifth of the writer's time */
    CPU_PUT_OFF_MS_MAX = 60 * 1000,       /* longest time that a run is deferred; later ones come due together and are deferred again */
    EXPR_CACHE_MAX = 256,                 /* compiled expressions kept by each thread */
    EXPR_CACHE_BYTES_MAX = 4 * MIB,       /* their size together: a hostile one takes fifty times its text */

    /* --- the gate in Redis --- */
    GATE_REPLY_MS_MAX = 1000,             /* one answer of Redis, or one connection: a start waits so long even without a budget of its own */
    GATE_RECONNECT_MS = 100,              /* between attempts to connect; starts meanwhile count as unanswered at once */
    GATE_DELAY_MS_MAX = 1000,             /* between two requests of a start that waits */
    GATE_BATCH_MAX = 256,                 /* requests in one round trip */
    GATE_SWEEP_MS = 1000,                 /* between two looks at what is left over, and between two attempts to release it */
    GATE_SWEEP_KEYS = 1000,               /* names that one look passes, of whatever else is in that database */
    GATE_FOUND_MAX = 100,                 /* reservations that one look compares with the store, on the HTTP loop */

    /* --- the commit loop --- */
    OPS_WAITING_MAX = 8192,               /* twice the connections: past it callers get 503 */
    OPS_BYTES_MAX = 64 * MIB,             /* bodies waiting for the writer, all together */
    OP_BYTES_MAX = 256 * MIB,             /* memory of one operation: past it the operation is rejected, before the server runs out of memory */
    EFFECTS_BYTES_MAX = 256 * MIB,        /* effects that wait to be published: one op of a batch may make as many as it may load */
    RUN_BYTES_PER_TURN_MAX = 32 * MIB,    /* loaded while a run advances: the rest continues in another turn, and what one step needs still fits */
    BODY_ON_LOOP_MAX = 16 * KIB,          /* parsed on the HTTP loop itself, in a tenth of a millisecond; larger ones are parsed on another thread: 5 ms for 1 MiB */
    BODIES_PER_TENANT_BYTES_MAX = 32 * MIB, /* large bodies of one tenant that wait to be parsed: half of OPS_BYTES_MAX, the rest is for other tenants */
    INLINE_BYTES_MAX = 64 * KIB,          /* of a change that the HTTP loop makes itself: larger ones take long to check */
    OPS_PER_COMMIT_MAX = 512,             /* one fsync's worth: keeps a commit short */
    BATCH_GROWS_US_MAX = 1000,            /* so long ops that come join the batch that runs: the first of them wait for the last */
    SHOWN_STEPS_MAX = 16,                 /* of a run whose end the writer shows to those that wait: larger ones are read beside it */
    SHOWN_BYTES_MAX = 16 * KIB,           /* the same, as JSON */
    CLAIMS_PER_COMMIT_MAX = 512,          /* waiting claims that join a commit beside its changes: keeps it short too */
    OP_WAIT_MS_MAX = 10 * 1000,           /* then the caller gets a response that asks it to retry */
    WAL_SLICE_PAGES = 2000,               /* of the log, folded back together beside the writer: a page that changes often is copied once in so many */
    WAL_LAST_SLICE_PAGES = 500,           /* the same before the log starts again: the writer goes on meanwhile, and must leave no more than a rest */
    WAL_REST_PAGES = 250,                 /* few enough for the writer to fold itself: a millisecond or two */
    WAL_CHECKPOINT_PAGES = 4000,          /* from here on the log starts again as soon as only a rest is left */
    WAL_FORCE_PAGES = 16 * 1000,          /* 64 MiB: the writer folds what is left, however much: the disk is slower than the load */
    WAL_PAGES_MAX = 64 * 1024,            /* 256 MiB: past it writes are refused until it can shrink */
    PUT_ASIDE_MS = 60 * 1000,             /* a failing item is retried after this time, doubled each time up to an hour: it needs a person, not the writer's time */
    BACKGROUND_MS_MAX = 500,              /* of one turn of background work, which callers wait for: with a file it takes a tenth of that, but across a network every look-up is a trip */
    TIMERS_PER_TURN_MAX = 256,            /* due timers share the writer with callers */
    TIMERS_SEARCHED_MAX = 8192,           /* timers of a tenant with a backlog that one turn skips to find those of others: two milliseconds */
    TIMERS_LATEST_SEARCHED_MAX = 2048,    /* the latest due timers, searched first: a small tenant's timer is usually there */
    TIMERS_SINGLED_OUT_MAX = 64,          /* timers of other tenants after that backlog, fired in the same turn */
    TIMERS_SINGLED_OUT_TENANT_MAX = 8,    /* of one such tenant */
    TIMERS_ROWS_PER_TURN_MAX = 4000,      /* rows that they change: some 20 ms of the writer, counted in rows so that it does not depend on the machine */
    TIMERS_BYTES_PER_TURN_MAX = 16 * MIB, /* memory limit of a turn: many large timers must not run out of memory */
    KEY_SEGMENT_KEYS = 8192,              /* keys that are sealed together: two milliseconds of work, and read at start */
    KEY_ROWS_READ_MAX = 32768,            /* runs without a key, or pages of large ones: read at start within a tenth of a second */
    KEY_FILTERS_BYTES_MAX = 64 * MIB,     /* memory for filters: 44 million keys. More are found too, by a read for each large segment */
    KEY_WORK_PAUSE_MS = 20,               /* between slices of merging: 600,000 keys a second */
    LATE_INDEX_ROWS = 4096,               /* rows that are indexed together: a few milliseconds of work, and with many tenants a page for each */
    RECENT_RUNS_MAX = 8192,               /* runs that are not indexed, in memory: past it the index is filled from the rows */
    TIMERS_FOLDED_TOGETHER = 256,         /* timers that get their rows together: half a millisecond of work, some pages that follow each other */
    RECENT_TIMERS_MAX = 4096,             /* timers without a row, when a fold is kept off; more get a row at once */
    ROW_CACHE_ROWS = 4096,                /* runs and jobs that the writer remembers: those of a thousand runs on their way */
    ROW_CACHE_TEXT_MAX = 8 * KIB,         /* texts of one of them; a larger row is read again */
    ROW_CACHE_BYTES_MAX = 8 * MIB,        /* all of them */
    ROWS_UNWRITTEN_MAX = 1024,            /* of them, to be written before the commit: more are written at once */
    CLAIM_QUEUE_JOBS_MAX = 1024,          /* claimable jobs of one queue that the writer remembers: more are searched for in the rows */
    CLAIM_QUEUES_KNOWN_MAX = 128,         /* queues whose jobs it remembers: 5 MiB if all are full */
    DAMAGED_PASSED_MAX = 16,              /* damaged jobs that a claim skips; more mean a damaged file */
    ROWS_PER_SLICE = 64,                  /* rows of a search that may end early, fetched at once: an engine across a network fetches all that a query finds */
    HOLDERS_PASSED_MAX = 64,              /* runs of other tenants that a search for slot holders skips in one step */
    EVICT_PER_TURN_MAX = 256,             /* expired idempotency keys removed in one turn */
    READERS = 2,                          /* threads that answer GETs beside the HTTP loop */
    READS_WAITING_MAX = 1024,
    DOCTOR_MS_MAX = 10 * 60 * 1000,       /* it reads every row */
    READ_MS_MAX = 5 * 1000,               /* a query that takes longer is stopped: it pins the WAL */
    LOOP_READ_MS_MAX = 2 * 1000,          /* the loop's own reads are single rows: a server that is slower does not answer, and everybody waits */

    /* --- subscriptions --- */
    STREAM_EVENTS_MAX = 100,              /* read at once for one subscriber, or for all that are caught up */
    STREAM_BYTES_MAX = 256 * KIB,         /* read at once, plus one event */
    STREAM_SCAN_MAX = 4096,               /* rows of the feed examined at once: most belong to other tenants */
    STREAM_WINDOW_BYTES = 256 * KIB,      /* newest events of one tenant or run, kept for its subscribers */
    STREAM_READS_MAX = 32,                /* concurrent reads of subscribers that are behind: leaves room for other reads */
    STREAM_LISTENERS_PER_MS = 50,         /* a thousand get events at most every 20 ms: half of the loop's time at worst */

    /* --- pages --- */
    PAGE_DEFAULT = 50,
    PAGE_MAX = 200,
    PAGE_BYTES_MAX = 4 * MIB,             /* then a page ends early: the rest of HTTP_REPLY_MAX holds any one row */
    PAGE_SCAN_MAX = 20000,                /* rows examined for one page when a filter rarely matches */
    RUN_SEARCH_SCAN_MAX = 5000,           /* the same for a search, whose rows cost more */
    RUN_SEARCH_MAX = 200,                 /* bytes that are searched for */
    RUN_SEARCH_ERROR_MAX = 4 * KIB,       /* of an error, in which they are searched */

    /* --- work --- */
    CLAIM_MAX = 100,                      /* jobs assigned in one call */
    HANDED_BYTES_MAX = CLAIM_MAX * 128,   /* recorded for the jobs that one call assigns */
    CLAIM_FILL_BYTES = 1 * MIB,           /* of jobs of some shards; then others are not asked: the next answer may have PAGE_BYTES_MAX and more */
    CLAIM_QUEUES_MAX = 16,
    CLAIM_WAIT_MS_MAX = 30 * 1000,
    CLAIM_LOOK_MS = 1000,                 /* how often the server checks that waiting callers are still connected */
    RUN_WAIT_MS_MAX = 60 * 1000,
    ASK_WAIT_MS_DEFAULT = 10 * 1000,      /* most handlers finish within it, and no proxy gives up earlier */
    LEASE_MS_MIN = 100,
    LEASE_MS_MAX = 12 * 3600 * 1000,
    LEASE_MS_DEFAULT = 30 * 1000,
    SLEEP_DAYS_MAX = 3660,                /* ten years */
    BULK_RUNS_MAX = 200,                  /* runs changed by one call: all in one commit */
    RETENTION_ROWS_PER_TURN_MAX = 512,    /* removed in one slice: a millisecond or two */
    RETENTION_RUNS_PER_TURN_MAX = 256,    /* runs examined in one slice */
    RETENTION_PAUSE_MS = 60 * 1000,       /* after the last run that was old enough */
    REMINDERS_MAX = 100,                  /* of one approval: more would not help */
    APPROVAL_STATS_DAYS_DEFAULT = 30,
    APPROVAL_STATS_DAYS_MAX = 366,
    APPROVAL_STATS_ROWS_MAX = 20 * 1000,  /* approvals that one analysis covers: some tens of milliseconds */
    APPROVAL_STATS_WORKFLOWS_MAX = 100,   /* workflows that are shown one by one */
    SCHEDULES_PER_TURN_MAX = 64,          /* due times share the writer with callers */
    SCHEDULE_CATCH_UP_S_MAX = 30 * 86400,
    POSTPONED_MS = 60 * 1000,             /* what cannot be done now is tried again after this time */
    HEARTBEAT_NOTE_MAX = 64 * KIB,
    FINISH_ITEMS_MAX = 100,               /* results in one call */
    PRIORITY_MIN = -100,
    PRIORITY_MAX = 100,
    POLLS_KEPT_MAX = 4096,                /* workers and queues whose last poll is remembered: 1.4 MiB */
    POLLED_LATELY_MS = 60 * 1000,         /* twice CLAIM_WAIT_MS_MAX: a worker that waits has polled lately */
    QUEUE_TIMERS_MAX = 10 * 1000,         /* leases and delays examined to count those of a tenant's queues: 30 ms */
    LIMIT_KEYS_SCAN_MAX = 10 * 1000,      /* keys with limits of a tenant among which the busiest are sought */
    QUEUE_READY_MAX = 10 * 1000,          /* jobs of one queue that are counted exactly */
    QUEUE_OLDEST_MAX = 1000,              /* jobs among which the oldest is searched */
    QUEUES_PASSED_MAX = 1000,             /* queues of other tenants that one page skips */
    ATTEMPTS_KEPT_MAX = 20,               /* failed attempts of a job: the first and the newest */
    ATTEMPT_ERROR_MAX = 4 * KIB,          /* stored with each of them and in the timeline; the job has the last error whole */
    ATTEMPT_MESSAGE_MAX = 2 * KIB,        /* of the message, if the error is longer */
    ATTEMPTS_TEXT_MAX = 1 * MIB,          /* ATTEMPTS_KEPT_MAX of them, however their text is written */
    JOB_OUTPUT_MAX = 512 * KIB,           /* outputs of earlier steps travel with the run */
    CHECKPOINTS_MAX = 1000,               /* of one job: all of them travel with every claim of it */
    CHECKPOINTS_BYTES_MAX = 1 * MIB,      /* their names and values together: a claim's answer holds them beside the largest input */
    CHECKPOINT_NAME_MAX = 256,            /* a step's name with the number of a loop */
    SUSPENSIONS_MAX = 10 * 1000,          /* of one job: hourly for a year; what waits more often is an entity */

    /* --- calls out --- */
    CALLS_IN_FLIGHT_MAX = 64,             /* each may hold a whole response: 64 MiB at worst */
    CALLS_PER_TENANT_MAX = 32,            /* of http steps: half of the calls, so that slow receivers of one tenant do not block the others */
    CALLS_WAITING_MAX = 1024,             /* submitted and not yet started */
    CALLS_TAKEN_PER_TURN_MAX = 32,        /* jobs taken at once, before other work gets its turn */
    CALL_RESPONSE_MAX = 1 * MIB,          /* a message, as HTTP_BODY_MAX; more is aborted on its way */
    CALL_HEAD_MAX = 64 * KIB,             /* of a response, all header lines together */
    CALL_HEADERS_KEPT_MAX = 16 * KIB,     /* headers in a step's output; the rest is left out */
    CALL_OUTPUT_MAX = CALL_RESPONSE_MAX + 64 * KIB, /* the response as JSON: half of PAGE_BYTES_MAX holds it with its run */
    CALL_EXCERPT_MAX = 2 * KIB,           /* of an unsuccessful response, stored with the error */
    CALL_REDIRECTS_MAX = 5,
    CALL_CONNECT_MS_MAX = 10 * 1000,      /* three lost SYNs */
    CALL_TIMEOUT_MS_DEFAULT = 30 * 1000,
    CALL_TIMEOUT_MS_MAX = 10 * 60 * 1000, /* it holds one of few slots: longer work should respond with 202 and send a signal */
    CALL_GRACE_MS = 5 * 1000,             /* from the end of a call's time to the end of its lease: the commit of its result */
    CALL_DRAIN_MS = 5 * 1000,             /* a stopping server waits this long for running calls, then releases their jobs */
    CALL_CONNECTIONS_KEPT_MAX = 32,       /* idle ones */
    CALL_CONNECTION_AGE_S = 30,           /* idle for longer than that: the other side may be about to close it */
    CALL_RESOLVER_MS_MAX = 30 * 1000,     /* libc's resolver gives up after about that time, and cannot be stopped */
    RETRY_AFTER_MS_MAX = 24 * 3600 * 1000, /* what a receiver may ask for: as the longest backoff */

    /* --- calls to other nodes --- */
    NODE_CONNECT_MS = 2 * 1000,           /* less than half of a lease: a node that is gone is noticed before its shards move */
    NODE_HEAD_MS = 90 * 1000,             /* until an answer begins: the longest wait, and half of that for the work */
    NODE_STALL_MS = 3 * HTTP_STREAM_PULSE_MS, /* within an answer: an event stream has a pulse */
    NODE_CONNECTION_AGE_S = 30,           /* idle for longer: less than half of HTTP_IDLE_TIMEOUT_S, so the node is not about to close it */
    NODE_CONNECTIONS_KEPT_MAX = 256,      /* idle ones: as many callers at once need no handshake */
    NODE_BUFFER_MAX = 256 * KIB,          /* of an answer that the client has not taken yet; then its sender waits */
    ERRAND_BYTES_MAX = 32 * MIB,          /* of answers of several shards that are being merged: four of the largest */
    NODE_CLOCK_MS = 60 * 1000,            /* how old a forwarded request may be; clocks are the database's */
    NODE_REPLAY_WINDOW = 64 * KIB,        /* how far requests of one node may overtake each other: two seconds of them */
    NODE_SENDERS_MAX = 256,               /* sessions of nodes whose windows are kept */
    NODE_SESSION_MAX = 64,
    NODE_SECRET_MAX = 128,

    /* --- webhooks --- */
    WEBHOOKS_PER_TENANT_MAX = 20,         /* each event may become a row for every one of them */
    WEBHOOK_EVENTS_MAX = 32,              /* patterns of one */
    WEBHOOK_URL_MAX = 2 * KIB,            /* what servers take in general */
    WEBHOOK_IN_FLIGHT_MAX = 4,            /* to one healthy receiver; a failing one gets one at a time */
    WEBHOOKS_TENANT_IN_FLIGHT_MAX = 16,   /* a quarter of CALLS_IN_FLIGHT_MAX */
    WEBHOOK_TIMEOUT_MS = 15 * 1000,       /* Standard Webhooks: 15 to 30 s */

    /* --- exported spans --- */
    SPANS_PER_BATCH_MAX = 512,            /* OpenTelemetry's own default */
    SPAN_BATCH_BYTES = 256 * KIB,         /* a batch of this size takes no more: 512 usual spans fit */
    SPAN_BATCH_BYTES_MAX = 384 * KIB,     /* with the last span, whose tracestate may be long */
    SPAN_BATCHES_MAX = 16,                /* 8192 spans or 6 MiB wait for a collector that is away */
    SPAN_BATCH_DELAY_MS = 1000,           /* how long a span waits for others */
    SPAN_TIMEOUT_MS = 10 * 1000,          /* of one request to the collector: OpenTelemetry's default */
    SPAN_ATTEMPTS_MAX = 5,                /* of one batch: some 15 s, a collector's restart */
    SPAN_RETRY_MS = 1000,                 /* before the second attempt; doubles */
    SPAN_RETRY_MS_MAX = 30 * 1000,        /* also when the collector asks for more */
    SPAN_DRAIN_MS = 2 * 1000,             /* a stopping server waits this long for the collector */
    SPAN_LOG_MS = 30 * 1000,              /* how often a failing export is logged at most */
    SPAN_TEXT_MAX = 1 * KIB,              /* of a message or a path; the rest is cut off */
    WEBHOOK_LEASE_MS = 30 * 1000,         /* of a delivery that is being sent: its timeout, the wait for a slot and the commit of its result */
    WEBHOOK_OLD_SECRET_S = 24 * 3600,     /* default time for which pawl also signs with a replaced secret */
    WEBHOOK_OLD_SECRET_S_MAX = 7 * 24 * 3600,
    WEBHOOK_FAILING_MS_MAX = 5 * 24 * 3600 * 1000, /* longer than the retries of one delivery take */
    WEBHOOK_LOOKED_AT_MAX = 32,           /* due deliveries of one webhook that are examined for those that may be sent now */
    WEBHOOKS_PER_TURN_MAX = 256,          /* webhooks searched for due deliveries at once */
    DELIVERIES_TAKEN_PER_TURN_MAX = 32,   /* as CALLS_TAKEN_PER_TURN_MAX */
    DELIVERY_BODY_MAX = 256 * KIB,        /* a larger event is sent without its data: receivers read the run */
    DELIVERIES_KEPT_MAX = 10 * 1000,      /* in the log of one webhook, besides those that wait */
    DELIVERY_KEPT_MS = 7 * 24 * 3600 * 1000,
    DELIVERIES_WAITING_MAX = 100 * 1000,  /* then a webhook is disabled: about 100 MiB of rows that its receiver does not accept */
    DELIVERIES_SWEPT_PER_TURN_MAX = 512,  /* looked at in one slice: a millisecond or two */
    DELIVERIES_SWEEP_PAUSE_MS = 60 * 1000,
    FAN_OUT_FEED_PER_TURN_MAX = 4096,     /* rows of the feed skipped in one slice: most belong to tenants without webhooks */
    FAN_OUT_PER_TURN_MAX = 512,           /* deliveries made in one slice */
    FAN_OUT_PAUSE_MS = 10,                /* between slices, so that they do not double the number of commits */

    /* --- the relay to the bus --- */
    RELAY_WINDOW_MESSAGES = 1024,         /* read ahead of what is acknowledged */
    RELAY_WINDOW_BYTES = 8 * MIB,         /* read ahead, plus one message of any size */
    RELAY_WINDOW_STUBS = 4096,            /* rows that are known but not read yet, after long timelines */
    RELAY_LANE_MAX = 64,                  /* messages of one run in the window: sixteen such runs do not block the others */
    RELAY_BATCH_MAX = 256,                /* sent before the first acknowledgement is waited for */
    RELAY_MARK_MS = 50,                   /* how often the position is saved at most: this much is sent again after a crash */
    RELAY_AGAIN_MAX = 32,                 /* parked messages that are retried at once */
    RELAY_NOTES_MAX = 1024,               /* messages on their way to be parked: past it the relay waits for the writer */
    RELAY_ATTEMPTS_MAX = 5,               /* attempts of a message that is not acknowledged while others are: then it is parked */
    RELAY_BACKOFF_MS = 50,
    RELAY_BACKOFF_MS_MAX = 2 * 1000,      /* a bus that is back is noticed within this time */
    FEED_KEPT_MS = 3 * 86400 * 1000,      /* for a subscriber that reconnects, or a bus that is added later */
    FEED_SWEPT_PER_TURN_MAX = 1000,       /* rows removed in one slice: a millisecond or two */
    FEED_SWEEP_PAUSE_MS = 60 * 1000,      /* after the last row that was old enough */
    FEED_HELD_RUNS_MAX = 8192,            /* runs with events that the relay has not published: past it no run is removed until it has caught up */
    BUS_QUEUES_MAX = 64,                  /* whose jobs are offered on the bus */

    /* --- admission --- */
    QUEUED_RUNS_MAX = 1000 * 1000,        /* of a tenant that sets no max_queued_runs: about 1 GiB of rows */
    CANCELLED_PER_START_MAX = 100,        /* by cancel_oldest, after a limit was lowered: all in one commit */
    COALESCE_SCAN_MAX = 1000,             /* active runs searched for one of the same workflow */
    DISPATCHED_PER_OP_MAX = 16,           /* queued runs that start in the transaction that frees a slot */
    DISPATCHED_PER_TURN_MAX = 64,         /* the rest start in slices, shared between tenants */
    LINES_PER_TURN_MAX = 256,             /* groups of queued runs examined in one slice */
    WHY_JOBS_MAX = 50,                    /* open jobs that are named */
    WHY_HOLDERS_MAX = 20,                 /* holders of slots that are named */
    WHY_PLACE_MAX = 100 * 1000,           /* a place further back is not counted exactly */
    COUNTER_LOG_ROWS_MAX = 64,            /* commits whose counters are in the log before it is folded: a reader of counters reads all of it */
    COUNTER_LOG_PACKS_MAX = 256,          /* packs of the feed after the last fold: the reader passes over those without counters, 100 µs */
    COUNTER_LOG_TENANTS_MAX = 256,        /* then it is folded too: a millisecond or two */
    COUNTER_LOG_ROW_MAX = 1 * MIB,        /* more than the tenants of one transaction need */
    SETTINGS_KEPT_MAX = 100,              /* earlier settings of a tenant that can be restored */
    CHECK_EVERY_MS = 5 * 60 * 1000,       /* how often slots are recounted while the server runs */
    CHECK_MS_MAX = 2 * 1000,              /* longest time of such a recount */
    FINDINGS_SHOWN_MAX = 100,             /* of each kind that the doctor names; all are counted */

    /* --- metrics --- */
    METRIC_TENANTS_MAX = 1000,            /* the contract's: the rest share `other` */
    METRIC_QUEUES_MAX = 1000,             /* as many queues as tenants */
    METRICS_REST = 9,                     /* pause after a metrics page, in multiples of the time it took: at most a tenth of one CPU core */
    METRICS_REST_MS_MAX = 1000,           /* longest pause: scrapers do not wait longer */
    METRIC_SERIES_MAX = 8192,             /* per family */

    /* --- a cluster --- */
    CLUSTER_MOVED_MAX = 1024,             /* tenants that are not where their names lead: every node has read all of them */
    CLUSTER_SHARDS_MAX = 256,             /* of a store: each has a thread and three connections of its own where it is served */
    CLUSTER_SHARDS_DEFAULT = 16,          /* of a database that is set up by `pawl serve`: a few nodes share them evenly */
    CLUSTER_NODES_MAX = 64,               /* that a node knows; more nodes than shards serve nothing */
    CLUSTER_PLACES_MAX = 32,              /* databases beside the directory's that have shards of it */
    PLACE_URL_LEN_MAX = 511,              /* of such a database */
    NODE_NAME_LEN_MAX = 64,               /* a host's name */
    NODE_URL_LEN_MAX = 256,
    NODE_LEASE_MS = 5 * 1000,             /* by the database's clock: after it others take the shards of a node that is gone */
    NODE_RENEW_MS = 1500,                 /* between renewals: three may fail */
    NODE_GONE_MS = 1500,                  /* without a session at the database: one that was cut off is back by then, and a dead one need not use up its lease */
    NODE_ANSWER_MS = 3 * 1000,            /* the database answers the node by then, or it connects again and still has its lease */
    MOVER_LOCK_MS = 4000,                 /* the same for a command, which has nothing else to do than to wait; a lease is longer */
    NODE_LOCK_MS = 300,                   /* longest wait for the row of a shard, whose owner is in the middle of a commit */

    /* --- keys and caches --- */
    API_KEY_TEXT_MAX = 128,
    LOGIN_FAILURES_BURST = 100,           /* of one address: a fleet behind one address restarts with an old key */
    LOGIN_FAILURES_PER_S = 10,            /* and then: a person or a script that retries hardly notices */
    LOGIN_PEERS_MAX = 4096,               /* addresses that are remembered: 96 KiB */
    LOGIN_LOG_MS = 10 * 1000,             /* how often failed logins are logged at most */
    ROOT_KEY_MIN = 32,                    /* characters: 128 bits when they are hexadecimal */
    ROOT_KEY_DISTINCT_MIN = 8,            /* of them: 32 random hexadecimal digits have fewer once in 25 million keys */
    AUTH_CACHE_MAX = 4096,
    SESSION_MS = 8 * 3600 * 1000,         /* of a person in a browser: a working day */
    SESSION_TEXT_MAX = 512,               /* of its cookie: the longest names of a tenant and an actor, encoded */
    OIDC_SESSION_MS = 3600 * 1000,        /* of a person whom an OpenID provider named: it cannot revoke it here */
    OIDC_FLOW_MS = 10 * 60 * 1000,        /* from the redirect to the provider until the person is back, with a password and a second factor */
    OIDC_RETURN_MAX = 512,                /* of the place in the console to come back to */
    OIDC_CODE_MAX = 2 * KIB,              /* of a code or a state in the answer of a provider */
    OIDC_TOKEN_MAX = 64 * KIB,            /* of an ID token: some list hundreds of groups */
    OIDC_KEYS_MAX = 64,                   /* of a provider that are tried */
    OIDC_WAITING_MAX = 64,                /* people who sign in at once; each holds a connection */
    OIDC_CALL_MS = 10 * 1000,             /* of one request to the provider */
    OIDC_KEPT_MS = 3600 * 1000,           /* of its endpoints and keys */
    OIDC_KEYS_REST_MS = 60 * 1000,        /* between two readings of its keys because a token names an unknown one */
    OIDC_CLOCK_SKEW_S = 60,               /* between its clock and ours */
    SESSIONS_ENDED_MAX = 16 * 1024,       /* signed out before their time, which are remembered until then: 1.2 MiB */
    LAST_USED_GRAIN_MS = 60 * 1000,       /* a key's last use is kept to the minute, not to the request */
    IDEM_STATS_PENDING_MAX = 4096,        /* replay counts that wait for the next commit */
    IDEM_STATS_FLUSH_MS = 1000,
    STATS_TENANTS_MAX = 1000,             /* tenants with counts of their own in a minute: 300 KiB, and 1.4 million rows a day */
    STATS_ROWS_PER_TURN = 64,             /* rows of counts, written or removed together: 2 ms */
    STATS_SWEEP_PAUSE_MS = 60 * 1000,

    /* --- copies of stores --- */
    COPY_TABLES_MAX = 256,                /* four times as many as there are */
    COPY_COLUMNS_MAX = 40,                /* parameters of one statement */
    COPY_SLICE_ROWS = 2000,               /* copied in one transaction: it costs much more than a sync */
    COPY_SLICE_CHARS = 4 * MIB,           /* the same for large rows; one row may be larger */
};
/* clang-format on */

#endif
