// Made from docs/openapi.yaml by "npm run generate". Do not edit.

import type { Definition } from "./definition.js";

export type IdOrNull = string | null;

export type NameOrNull = string | null;

export type TimeOrNull = string | null;

export type IdempotencyKeyText = string;

/** For the next page; null at the end. */
export type NextCursor = string | null;

export type Labels = Record<string, string>;

/** The status of a run; docs/api.md has the transitions. */
export type RunStatus =
  | "queued"
  | "pending"
  | "running"
  | "waiting"
  | "paused"
  | "succeeded"
  | "failed"
  | "denied"
  | "cancelled"
  | "timed_out";

/** The state of a job; docs/api.md has the transitions. */
export type JobState =
  | "approval"
  | "pending"
  | "scheduled"
  | "suspended"
  | "dispatched"
  | "running"
  | "succeeded"
  | "failed"
  | "denied"
  | "cancelled"
  | "timed_out"
  | "skipped";

/** This version runs every type except llm. */
export type StepType =
  "task" | "sleep" | "http" | "approval" | "wait_signal" | "transform" | "emit" | "workflow" | "llm";

export type Role = "viewer" | "worker" | "approver" | "operator" | "admin";

export interface Fault {
  /** JSON Pointer to the place. */
  path: string;
  message: string;
}

/** What happens to a start at a limit. reject: 429. queue: the run is queued and starts when there is room. cancel_oldest: the oldest run under the limit is cancelled. coalesce: the start joins the newest active run of the same workflow under the limit. */
export type AtLimit = "reject" | "queue" | "cancel_oldest" | "coalesce";

/** Overrides the policies of the workflow and the tenant. */
export type AtLimitWish = AtLimit | null;

/** How many runs of the workflow may be active at once. The newest version's rules apply. A rule counts the runs that were started under it, in any version that has it. */
export interface ConcurrencyLimit {
  /** A path into the input, such as input.customer.id: a limit for each value. Runs without a value share one. Absent: one limit for the whole workflow. Any other expression is stored with a warning; this version cannot run it. */
  key?: string;
  limit: number;
  at_limit?: AtLimit;
}

/** RFC 9457. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: ProblemCode;
  /** Whether the same request may succeed later. */
  retryable: boolean;
  trace_id: string;
  /** MAX_CONCURRENT_RUNS: which limit is reached, tenant, workflow or key; QUEUE_FULL: queue; RATE_LIMITED: rate; INBOX_FULL: inbox. */
  limited_by?: "tenant" | "workflow" | "key" | "queue" | "rate" | "inbox";
  /** MAX_CONCURRENT_RUNS: runs that hold a slot under the limit, or are about to; QUEUE_FULL: queued runs; RATE_LIMITED: the same as limit. */
  current?: number;
  /** MAX_CONCURRENT_RUNS and QUEUE_FULL: the limit; RATE_LIMITED: the burst. */
  limit?: number;
  /** RATE_LIMITED: starts allowed per second. */
  per_second?: number;
  /** CONCURRENCY_ERROR: the version in If-Match. */
  expected?: number;
  /** CONCURRENCY_ERROR, RUN_IS_OVER and other conflicts with a run: its current version. */
  actual?: number;
  /** APPROVAL_CONFLICT: the decision. */
  decision?: "approved" | "rejected";
  /** APPROVAL_CONFLICT: who decided. */
  decided_by?: string;
  /** APPROVAL_CONFLICT: when it was decided. */
  decided_at?: string;
  /** APPROVAL_EXPIRED: the outcome that the definition chose. */
  outcome?: "reject" | "approve" | "fail";
  /** APPROVAL_EXPIRED. */
  expired_at?: string;
  /** NOT_AWAITING_APPROVAL. */
  job_state?: string;
  /** APPROVAL_STALE: the hash of the current content. */
  content_hash?: string;
  /** DEFINITION_INVALID and INPUT_INVALID: what is wrong, and where. */
  errors?: Fault[];
}

export type ProblemCode =
  | "BAD_REQUEST"
  | "JSON_INVALID"
  | "FIELD_INVALID"
  | "IDEMPOTENCY_KEY_INVALID"
  | "CURSOR_INVALID"
  | "UNAUTHENTICATED"
  | "FORBIDDEN"
  | "CROSS_SITE_REQUEST"
  | "NOT_AN_APPROVER"
  | "SELF_APPROVAL_DENIED"
  | "NOT_FOUND"
  | "TENANT_NOT_FOUND"
  | "WORKFLOW_NOT_FOUND"
  | "RUN_NOT_FOUND"
  | "JOB_NOT_FOUND"
  | "IDEMPOTENCY_KEY_NOT_FOUND"
  | "SCHEDULE_NOT_FOUND"
  | "SETTINGS_VERSION_NOT_FOUND"
  | "APPROVAL_NOT_FOUND"
  | "WEBHOOK_NOT_FOUND"
  | "DELIVERY_NOT_FOUND"
  | "ENTITY_TYPE_NOT_FOUND"
  | "ENTITY_NOT_FOUND"
  | "UPDATE_NOT_FOUND"
  | "METHOD_NOT_ALLOWED"
  | "IDEMPOTENCY_IN_FLIGHT"
  | "CONCURRENCY_ERROR"
  | "RUN_IS_OVER"
  | "RUN_NOT_OVER"
  | "RUN_NOT_UNDER_WAY"
  | "RUN_IS_A_CHILD"
  | "RUN_NOT_RETRYABLE"
  | "RUN_BEING_REMOVED"
  | "NOT_A_DEAD_LETTER"
  | "ENTITY_CALL_NOT_DROPPABLE"
  | "ENTITY_MIGRATING"
  | "STATUS_CONFLICT"
  | "JOB_NOT_CLAIMABLE"
  | "LEASE_LOST"
  | "JOB_NOT_DURABLE"
  | "JOB_LIMIT_REACHED"
  | "APPROVAL_CONFLICT"
  | "NOT_AWAITING_APPROVAL"
  | "APPROVAL_EXPIRED"
  | "APPROVAL_STALE"
  | "CONCURRENT_APPROVAL"
  | "WEBHOOK_LIMIT_REACHED"
  | "ENTITY_VERSION_UNKNOWN"
  | "BODY_TOO_LARGE"
  | "URI_TOO_LONG"
  | "UNSUPPORTED_MEDIA_TYPE"
  | "EXPECTATION_FAILED"
  | "HOST_NOT_ALLOWED"
  | "DEFINITION_INVALID"
  | "DEFINITION_UNSUPPORTED"
  | "INPUT_INVALID"
  | "INPUT_TOO_COMPLEX"
  | "EXPRESSION_FAILED"
  | "OPERATION_TOO_LARGE"
  | "ENTITY_ANSWER_INVALID"
  | "IDEMPOTENCY_KEY_REUSED"
  | "MAX_CONCURRENT_RUNS"
  | "QUEUE_FULL"
  | "INBOX_FULL"
  | "RATE_LIMITED"
  | "TOO_MANY_FAILED_LOGINS"
  | "HEADERS_TOO_LARGE"
  | "INTERNAL"
  | "OBJECT_DAMAGED"
  | "OVERLOADED"
  | "ADMISSION_GATE_UNAVAILABLE"
  | "OUT_OF_MEMORY"
  | "STORE_BUSY"
  | "STORE_FULL"
  | "STORE_FAILED"
  | "SHUTTING_DOWN"
  | "HTTP_VERSION_NOT_SUPPORTED";

export interface StartRun {
  /** Any JSON value; null when absent. */
  input?: unknown;
  labels?: Labels | null;
  /** Runs with a higher priority leave the queue first, and their jobs are claimed first. */
  priority?: number | null;
  at_limit?: AtLimitWish;
  /** The run starts at this time; until then it is queued and needs no slot. */
  start_at?: string | null;
  /** The same as the header; any text without control characters. */
  idempotency_key?: string | null;
}

export interface StartRunFlat {
  definitionId: string;
  /** Any JSON value; null when absent. */
  input?: unknown;
  labels?: Labels | null;
  priority?: number | null;
  at_limit?: AtLimitWish;
  start_at?: string | null;
  /** The same as the header; any text without control characters. */
  idempotencyKey?: string | null;
}

export type Empty = Record<string, unknown>;

export interface RerunRun {
  from_step?: string | null;
}

export interface SignalRun {
  name: string;
  /** Any JSON value of at most 512 KiB; null when absent. */
  payload?: unknown;
  dedup_key?: string | null;
}

export interface SignalResult {
  run_id: string;
  /** 1, 2, 3 within the run. */
  seq: number;
  duplicate: boolean;
  run_status: RunStatus;
}

export interface BulkRuns {
  action: "cancel" | "pause" | "resume" | "retry";
  filter: {
    status?: RunStatus | null;
    workflow_id?: string | null;
    /** NAME:VALUE. */
    label?: string | null;
    created_after?: string | null;
    created_before?: string | null;
  };
  dry_run?: boolean | null;
  cursor?: string | null;
  reason?: string | null;
}

export interface BulkResult {
  refused: Array<{ run_id: string; code: ProblemCode; detail: string }>;
  matched: number;
  changed: number;
  unchanged: number;
  dry_run: boolean;
  next_cursor: NextCursor;
}

export interface CancelRun {
  /** Goes to the timeline. */
  reason?: string | null;
}

export interface StartedRun {
  /** True only for the request that created the run. */
  created: boolean;
  run_id: string;
  /** Present if a limit was reached and `at_limit` is coalesce: the start joined an active run. */
  coalesced?: true;
  run: Run;
}

export interface Run {
  id: string;
  workflow_id: string;
  workflow_version: number;
  status: RunStatus;
  /** The number of the last event of its timeline. It increases with each change of the run, its steps and their attempts. `ETag` and `If-Match` are this number in quotes. */
  version: number;
  priority: number;
  input: unknown;
  /** An object that steps may replace; {} at first. */
  state: unknown;
  /** The last step's output once the run has succeeded. */
  output: unknown;
  /** Null, or {code, step, cause} once the run has failed. */
  error: unknown;
  labels: Labels;
  steps: StepState[];
  created_by: string;
  created_at: string;
  started_at: TimeOrNull;
  finished_at: TimeOrNull;
  start_at?: string;
  deadline_at?: string;
  rerun_of?: string;
}

/** A run as lists show it, without its steps. */
export interface RunSummary {
  id: string;
  workflow_id: string;
  workflow_version: number;
  status: RunStatus;
  version: number;
  priority: number;
  input: unknown;
  state: unknown;
  output: unknown;
  error: unknown;
  labels: Labels;
  created_by: string;
  created_at: string;
  started_at: TimeOrNull;
  finished_at: TimeOrNull;
  start_at?: string;
  deadline_at?: string;
  rerun_of?: string;
}

export interface StepState {
  name: string;
  type: StepType;
  status: JobState;
  /** How often it was assigned. */
  attempt: number;
  /** Null until the step has begun. */
  job_id: string | null;
  output: unknown;
  error: unknown;
  /** The outputs together are too large for one response: GET /jobs/{id} has this one. */
  left_out?: true;
  started_at: TimeOrNull;
  finished_at: TimeOrNull;
  /** For a step with for_each. */
  items?: { total: number; begun: number; over: number; failed: number };
  child_run_id?: string;
  compensation?: "running" | "succeeded" | "failed";
}

export interface RunEvent {
  seq: number;
  type:
    | "run.created"
    | "run.scheduled"
    | "run.queued"
    | "run.admitted"
    | "run.paused"
    | "run.resumed"
    | "run.retried"
    | "run.progressed"
    | "run.succeeded"
    | "run.failed"
    | "run.timed_out"
    | "run.denied"
    | "run.cancelled"
    | "step.skipped"
    | "signal.received"
    | "event.emitted"
    | "approval.requested"
    | "approval.reminded"
    | "approval.escalated"
    | "approval.voted"
    | "approval.decided"
    | "job.approved"
    | "job.denied"
    | "job.created"
    | "job.scheduled"
    | "job.dispatched"
    | "job.claimed"
    | "job.released"
    | "job.held"
    | "job.checkpointed"
    | "job.suspended"
    | "job.resumed"
    | "job.lease_expired"
    | "job.stale_result"
    | "job.retry_scheduled"
    | "job.retried"
    | "job.succeeded"
    | "job.failed"
    | "job.timed_out"
    | "job.cancelled";
  at: string;
  data: unknown;
}

export interface RunPage {
  items: RunSummary[];
  next_cursor: NextCursor;
}

export interface EventPage {
  items: RunEvent[];
  next_cursor: NextCursor;
}

export interface Why {
  run_id: string;
  status: RunStatus;
  /** Queued: one for each limit that is reached, none if it is about to start. Active: one for each open step, after the pause of a paused run. Ended: none. */
  waits_for: Array<
    | WaitsForLimit
    | WaitsForWorkerQueue
    | WaitsForWorker
    | WaitsForTimer
    | WaitsForRetry
    | WaitsForSuspension
    | WaitsForPause
    | WaitsForApproval
    | WaitsForEvent
  >;
  /** The first reason in a sentence, for people. */
  summary: string;
  /** Queued runs only: its place in the queue of the limit that it waits for; 1 is next. Runs ahead of it that another limit blocks are skipped. */
  place?: number;
  /** With `place`: false when it is further back than that. */
  place_is_exact?: boolean;
  /** With `place`: all queued runs of the tenant. */
  queued_runs?: number;
}

export interface WaitsForLimit {
  kind: "limit";
  limited_by: "tenant" | "workflow" | "key";
  /** For a key: its path, as in the definition. */
  path?: string;
  /** For a key: its value; empty for runs that have none, a hash if it is longer than 256 bytes. */
  key?: string;
  /** Runs that hold a slot under it. */
  current: number;
  limit: number;
  /** The oldest of the runs that hold its slots. */
  holders: Array<{
    run_id: string;
    workflow_id: string;
    status: RunStatus;
    created_at: string;
    started_at: TimeOrNull;
  }>;
}

export interface WaitsForWorkerQueue {
  /** No worker has claimed the step's job. */
  kind: "worker_queue";
  step: string;
  job_id: string;
  queue: string;
  /** Among the tenant's jobs of that queue; 1 is next. */
  place: number;
  /** How many polled the queue in the last minute. */
  workers: number;
  /** Null: no worker has polled it since the server started. */
  last_polled_at: string | null;
  /** The error of the previous attempt, if any. */
  last_error?: unknown;
}

export interface WaitsForWorker {
  /** A worker is running the step's job. */
  kind: "worker";
  step: string;
  job_id: string;
  worker_id: string | null;
  attempt: number;
  lease_expires_at: string;
}

export interface WaitsForEvent {
  /** A signal, the response to an HTTP call, the end of a child run, or a resume. */
  kind: "signal" | "call" | "child_run" | "resume";
  step: string;
  job_id: string;
  due_at: TimeOrNull;
  /** The name of the signal, or the names. */
  signal?: unknown;
  /** For a step that waits for all of its signals: those received. */
  received?: string[];
  /** For a step that waits for all of its signals: those missing. */
  missing?: string[];
  child_run_id?: string;
}

export interface WaitsForApproval {
  /** A person has to decide. */
  kind: "approval";
  step: string;
  job_id: string;
  prompt: string;
  approvals: number;
  needed: number;
  approvers: Approvers;
  escalated_to?: Approvers;
  /** The requester, if the definition forbids it. */
  not_by?: string;
  requested_at: string;
  expires_at: TimeOrNull;
}

export interface WaitsForTimer {
  /** The step sleeps until then; without a step, the run starts then. */
  kind: "timer";
  step?: string;
  job_id?: string;
  due_at: string;
}

export interface WaitsForRetry {
  /** An attempt failed and the next one is due later. */
  kind: "retry";
  step: string;
  job_id: string;
  due_at: string;
  /** The number of the next attempt. */
  attempt: number;
  max_attempts: number;
  /** Why the previous attempt failed. */
  last_error?: unknown;
}

export interface WaitsForSuspension {
  /** The worker of the step gave the job up until something has come. */
  kind: "suspension";
  step: string;
  job_id: string;
  name: string | null;
  since: string;
  until: TimeOrNull;
  signal: NameOrNull;
  approval_id: IdOrNull;
}

export interface WaitsForPause {
  /** The run is paused. */
  kind: "pause";
  by: string | null;
  at: TimeOrNull;
}

/** Void: the job ended without a decision. */
export type ApprovalStatus = "pending" | "approved" | "rejected" | "expired" | "void";

/** Who may decide; without either list, everyone whose role allows it. */
export interface Approvers {
  roles: Array<"approver" | "operator" | "admin"> | null;
  users: string[] | null;
}

export interface ApprovalSummary {
  job_id: string;
  run_id: string;
  workflow_id: string;
  step: string;
  type: "approval" | "task";
  /** For a step with for_each. */
  item?: number;
  status: ApprovalStatus;
  prompt: string;
  /** What is to be approved; a task without its own content shows its input. */
  content: unknown;
  /** SHA-256 of the RFC 8785 form of {content, prompt}. */
  content_hash: string;
  /** Who started the run. */
  requested_by: string;
  requested_at: string;
  expires_at: TimeOrNull;
  /** The outcome if nobody decides in time. */
  on_expire: "reject" | "approve" | "fail";
  approvers: Approvers;
  forbid_requester: boolean;
  /** Votes for the current content. */
  approvals: number;
  needed: number;
  reminded: number;
  escalated_at: TimeOrNull;
  escalated_to?: Approvers;
  /** Pawl, when it expired. */
  decided_by: string | null;
  decided_at: TimeOrNull;
  reason: string | null;
  /** The edited content; null if it was not edited. */
  edited: unknown;
  /** How often the same decision was repeated. */
  replays: number;
  /** How often a decision was rejected. */
  conflicts: number;
}

export interface Approval {
  job_id: string;
  run_id: string;
  workflow_id: string;
  step: string;
  type: "approval" | "task";
  /** For a step with for_each. */
  item?: number;
  status: ApprovalStatus;
  prompt: string;
  /** What is to be approved; a task without its own content shows its input. */
  content: unknown;
  /** SHA-256 of the RFC 8785 form of {content, prompt}. */
  content_hash: string;
  /** Who started the run. */
  requested_by: string;
  requested_at: string;
  expires_at: TimeOrNull;
  /** The outcome if nobody decides in time. */
  on_expire: "reject" | "approve" | "fail";
  approvers: Approvers;
  forbid_requester: boolean;
  /** Votes for the current content. */
  approvals: number;
  needed: number;
  reminded: number;
  escalated_at: TimeOrNull;
  escalated_to?: Approvers;
  /** Pawl, when it expired. */
  decided_by: string | null;
  decided_at: TimeOrNull;
  reason: string | null;
  /** The edited content; null if it was not edited. */
  edited: unknown;
  /** How often the same decision was repeated. */
  replays: number;
  /** How often a decision was rejected. */
  conflicts: number;
  votes: Array<{ by: string; at: string; reason: string | null }>;
}

export interface ApprovalPage {
  items: ApprovalSummary[];
  next_cursor: NextCursor;
}

export interface Decide {
  reason?: string | null;
  /** The content_hash that the person saw; if it has changed, 409 APPROVAL_STALE. */
  expected_hash?: string | null;
  /** Replaces the content: the output of an approval step, or the input of a task. If more approvals are needed, the other approvers see it as the content and the count restarts. null: unchanged. */
  edited?: unknown;
}

export interface Decision {
  job_id: string;
  status: "approved" | "rejected" | "recorded" | "already_approved" | "already_rejected" | "already_recorded";
  approved_by?: string;
  approved_at?: string;
  rejected_by?: string;
  rejected_at?: string;
  /** Votes so far. */
  approvals?: number;
  needed?: number;
  /** The reason of the final decision. */
  reason: string | null;
  run_id: string;
  run_status: RunStatus;
}

export interface ApprovalAnalytics {
  since: string;
  /** There were more approvals or workflows than the response covers. */
  truncated: boolean;
  total: ApprovalTally;
  workflows: ApprovalTally[];
}

export interface ApprovalTally {
  workflow_id?: string;
  requested: number;
  pending: number;
  approved: number;
  rejected: number;
  expired: number;
  void: number;
  /** From the request to a person's decision. */
  decision_seconds: { count: number; mean: number | null; p50: number | null; p95: number | null };
  replays: number;
  conflicts: number;
  /** Share of all decision requests. */
  replay_rate: number;
  conflict_rate: number;
}

export interface ClaimJobs {
  worker_id: string;
  /** Searched in this order. */
  queues?: string[] | null;
  max?: number | null;
  wait_ms?: number | null;
  lease_ms?: number | null;
}

export interface ClaimJob {
  worker_id: string;
  lease_ms?: number | null;
}

export interface ClaimedJobs {
  jobs: ClaimedJob[];
}

/** What the job belongs to; an entity's job has no run, workflow or step. */
export type JobKind = "step" | "entity";

export interface ClaimedJob {
  job_id: string;
  kind: JobKind;
  run_id: IdOrNull;
  workflow_id: NameOrNull;
  step: NameOrNull;
  handler: string;
  attempt: number;
  tenant: string;
  input: unknown;
  /** For a step with for_each: the index of the item, from 0. */
  item?: number;
  /** The step that this job compensates. */
  compensates?: true;
  /** Send it back with the result. */
  lease_token: string;
  lease_expires_at: string;
  /** W3C trace context of this attempt; null for an entity. */
  traceparent: string | null;
  /** The tracestate of the run's start. */
  tracestate: string | null;
  /** The results that were stored with the job, by name; absent: none. */
  checkpoints?: Record<string, unknown>;
  /** Errors of parts that failed permanently, by name; absent if there are none. */
  checkpoint_errors?: Record<string, JobError>;
  resumed_by?: ResumedBy;
}

export interface CompleteJob {
  lease_token: string;
  output?: unknown;
  /** For a step: replaces the run's state; at most 512 KiB. */
  state?: Record<string, unknown> | null;
}

export interface FailJob {
  lease_token: string;
  error: JobError;
}

/** Of a failed attempt. */
export interface JobError {
  code: string;
  message?: string | null;
  retryable?: boolean | null;
  details?: unknown;
}

/** With an output or an error, not both; with neither the output is null. */
export interface CheckpointJob {
  lease_token: string;
  name: string;
  /** Any JSON value of at most 512 KiB. */
  output?: unknown;
  error?: JobError | null;
}

export interface Checkpoint {
  job_id: string;
  name: string;
  status: "stored" | "already_stored";
  /** The first one that was stored under this name. */
  output?: unknown;
  error?: JobError;
  /** This request had another result, which was not stored. */
  differs?: true;
}

/** With until, signal, both of these, or approval. */
export interface SuspendJob {
  lease_token: string;
  /** Your own name for this wait; comes back in resumed_by. */
  name?: string | null;
  /** Wait until this time; with signal, no longer than that. */
  until?: string | null;
  /** Wait for a signal of this name to the run. */
  signal?: string | null;
  approval?: Question | null;
}

/** What a person decides; as in an approval step, without templates. At most 512 KiB. */
export interface Question {
  prompt: string;
  /** What is to be approved; any JSON value. */
  content?: unknown;
  /** {count, forbid_requester, roles, users}. */
  approvers?: Record<string, unknown>;
  expires_s?: number;
  remind_every_s?: number;
  /** {after_s, approvers}. */
  escalation?: Record<string, unknown>;
}

export interface Suspended {
  job_id: string;
  status: "suspended" | "already_suspended";
  run_id: string;
  run_status: RunStatus;
  until: TimeOrNull;
  signal: NameOrNull;
  /** The id under which the question is decided: GET /approvals/{job_id}. */
  approval_id: string | null;
}

/** What ended the last suspension of the job; absent: nothing yet. */
export type ResumedBy =
  | {
      /** The time has come; with a signal, it did not come in time. */
      kind: "timer";
      /** What the suspension was called. */
      name: string | null;
      at: string;
    }
  | { kind: "signal"; name: string | null; at: string; signal: string; payload: unknown; sent_at: string }
  | {
      kind: "approval";
      name: string | null;
      at: string;
      approval_id: string;
      decision: "approved" | "rejected" | "expired";
      /** Pawl, when it expired. */
      by: string;
      reason: string | null;
      /** What was decided, as the person edited it. */
      content: unknown;
    };

/** For a step with its run, for an entity with the entity. */
export interface JobResult {
  job_id: string;
  status: "completed" | "already_completed" | "failed" | "retrying" | "already_failed" | "released";
  run_id: IdOrNull;
  run_status: RunStatus | null;
  entity?: EntityName;
  version?: number;
  generation?: number;
  retry_at?: string;
}

/** A job of a step, or a call of an entity's handler. */
export interface Job {
  job_id: string;
  run_id: IdOrNull;
  workflow_id: NameOrNull;
  step: NameOrNull;
  kind: JobKind;
  /** The step's type; for an entity, what the handler is called for. */
  type: StepType | "signals" | "migrate";
  entity?: EntityName;
  state: JobState;
  /** Empty if it needs no worker. */
  queue: string;
  handler: string | null;
  attempt: number;
  item?: number;
  compensates?: true;
  /** The progress of the last heartbeat. */
  progress?: unknown;
  child_run_id?: string;
  labels?: {
    /** For an approved job: the id of its message job.approved. */
    bus_msg_id?: string;
  };
  /** The last worker. */
  worker_id: string | null;
  /** When the lease expires, the sleep ends, or the approval has its next reminder or expires. */
  due_at: string | null;
  output: unknown;
  error: unknown;
  /** The results that were stored with the job, by name; absent: none. */
  checkpoints?: Record<string, unknown>;
  /** Errors of parts that failed permanently, by name; absent if there are none. */
  checkpoint_errors?: Record<string, JobError>;
  resumed_by?: ResumedBy;
  /** What a suspended job waits for. */
  suspended?: { name: string | null; since: string; until: TimeOrNull; signal: NameOrNull; approval_id: IdOrNull };
  created_at: string;
  started_at: TimeOrNull;
  finished_at: TimeOrNull;
  /** The failed attempts, oldest first, then the running one or the one that ended the job. If more than 20 failed, the first and the newest 19; the timeline has them all. */
  attempts: Attempt[];
}

export interface Queue {
  queue: string;
  /** Jobs that a worker may claim now. */
  ready: number;
  /** Jobs assigned to workers. */
  running: number;
  /** Jobs that wait for their next attempt. */
  delayed: number;
  /** False: the counts are lower bounds. The server counts up to 10,000 ready jobs of a queue, and the 10,000 leases and timers that end next. */
  exact: boolean;
  /** When the oldest ready job was created, among the first 1,000 of the queue. */
  oldest: string | null;
  /** How many polled it in the last minute. */
  workers: number;
  last_polled_at: TimeOrNull;
}

export interface QueuePage {
  items: Queue[];
  next_cursor: NextCursor;
}

export interface WorkerInfo {
  worker_id: string;
  /** Queues that it has polled or has jobs from. */
  queues: string[];
  /** The tenant's jobs that it holds. */
  running: number;
  /** False: `running` is a lower bound. */
  exact: boolean;
  /** It serves all tenants. */
  shared: boolean;
  last_polled_at: TimeOrNull;
}

export interface WorkerPage {
  items: WorkerInfo[];
  next_cursor: NextCursor;
}

export interface Attempt {
  /** Starts at 1 again when someone retries the job. */
  attempt: number;
  /** The number of its lease, as in job.stale_result; 0: it had none. */
  lease: number;
  /** Null: pawl itself. */
  worker_id: string | null;
  started_at: TimeOrNull;
  finished_at: TimeOrNull;
  outcome: "running" | "succeeded" | "failed" | "timed_out" | "lease_expired" | "cancelled" | "denied";
  /** Null, or the error of the attempt. An error of more than 4 KiB is reduced to `code`, the beginning of `message`, and `truncated: true`. */
  error: unknown;
}

export interface Heartbeat {
  lease_token: string;
  /** Any JSON value of at most 64 KiB, shown with the job. */
  progress?: unknown;
}

export interface Lease {
  job_id: string;
  lease_expires_at: TimeOrNull;
  cancel_requested: boolean;
}

export interface CompleteJobs {
  items: Array<{
    job_id: string;
    lease_token: string;
    output?: unknown;
    state?: Record<string, unknown> | null;
    error?: JobError | null;
  }>;
  claim?: ClaimJobs | null;
}

export interface JobsResult {
  results: Array<
    JobResult | { job_id: string; status: "refused"; code: ProblemCode; detail: string; retryable: boolean }
  >;
  jobs?: ClaimedJob[];
}

export interface JobPage {
  items: Job[];
  next_cursor: NextCursor;
}

/** Any text of at most 200 bytes of UTF-8 without control characters. */
export type EntityIdText = string;

export interface EntityRetry {
  /** 0: until one succeeds. */
  max_attempts: number;
  backoff_ms: number;
  max_backoff_ms: number;
}

export interface PutEntityType {
  /** The queue where calls wait for a worker. */
  queue: string;
  /** The handler that the worker calls. */
  handler: string;
  /** Version of the handler and of the states it writes; default: the newest, or 1. */
  version?: number | null;
  /** How long a signal's key is remembered. */
  dedup_window_s?: number | null;
  /** How many keys an entity remembers. */
  dedup_max_keys?: number | null;
  /** Number of events after which a generation ends. */
  rollover_events?: number | null;
  /** Earlier generations to keep; null: all of them. */
  keep_generations?: number | null;
  /** Limit on waiting signals of one entity. */
  max_inbox?: number | null;
  /** Limit on signals in one handler call. */
  max_batch?: number | null;
  /** Retry policy of a failed call. */
  retry?: {
    /** 0: until one succeeds. */
    max_attempts?: number | null;
    backoff_ms?: number | null;
    max_backoff_ms?: number | null;
  } | null;
}

export interface EntityVersionOfType {
  version: number;
  created_by: string;
  queue: string;
  handler: string;
  dedup_window_s: number;
  dedup_max_keys: number;
  rollover_events: number;
  keep_generations: number | null;
  max_inbox: number;
  max_batch: number;
  retry: EntityRetry;
  created_at: string;
  updated_at: string;
}

export interface EntityTypeItem {
  type: string;
  /** The newest. */
  version: number;
  created_at: string;
  updated_at: string;
}

/** A type with its newest version, and all of its versions, newest first. */
export interface EntityType {
  type: string;
  version: number;
  created_by: string;
  queue: string;
  handler: string;
  dedup_window_s: number;
  dedup_max_keys: number;
  rollover_events: number;
  keep_generations: number | null;
  max_inbox: number;
  max_batch: number;
  retry: EntityRetry;
  created_at: string;
  updated_at: string;
  versions: EntityVersionOfType[];
}

export interface PutEntityTypeResult {
  type: string;
  version: number;
  created_by: string;
  queue: string;
  handler: string;
  dedup_window_s: number;
  dedup_max_keys: number;
  rollover_events: number;
  keep_generations: number | null;
  max_inbox: number;
  max_batch: number;
  retry: EntityRetry;
  created_at: string;
  updated_at: string;
  /** This version is new. */
  created: boolean;
}

export interface EntityTypePage {
  items: EntityTypeItem[];
  next_cursor: NextCursor;
}

export interface SignalEntity {
  name: string;
  /** Any JSON value of at most 512 KiB; null when absent. */
  payload?: unknown;
  dedup_key?: string | null;
}

export interface SignaledEntity {
  /** Its number: 1, 2, 3 … in order of arrival at this entity. */
  seq: number;
  /** The key was known and nothing changed. */
  duplicate: boolean;
  generation: number;
}

export interface UpdateEntity {
  name: string;
  /** Any JSON value of at most 512 KiB; null when absent. */
  payload?: unknown;
  dedup_key: string;
}

/** Why the handler rejected the update. */
export interface UpdateError {
  code: string;
  message?: string | null;
}

export interface EntityUpdateResult {
  seq: number;
  /** The key was known and the handler was not called again. */
  duplicate: boolean;
  name: string;
  at: string;
  decided_at: TimeOrNull;
  status: "completed" | "rejected" | "waiting";
  /** The result of a completed update. */
  result?: unknown;
  error?: UpdateError;
}

export interface EntityUpdate {
  seq: number;
  name: string;
  status: "completed" | "rejected" | "waiting";
  /** The result of a completed update. */
  result?: unknown;
  error?: UpdateError;
  at: string;
  decided_at: TimeOrNull;
}

/** Idle: nothing to do. waiting: a call is waiting for a worker. running: a worker is running the call. retrying: the last attempt failed and the next one is due later. blocked: the call failed permanently; retry its dead letter. finished: the handler finished the entity; the next signal reopens it. */
export type EntityStatus = "idle" | "waiting" | "running" | "retrying" | "blocked" | "finished";

export interface EntityTimer {
  name: string;
  due_at: string;
  payload: unknown;
}

/** The keys that this entity remembers. */
export interface EntityDedup {
  keys: number;
  oldest: TimeOrNull;
  window_s: number;
  max_keys: number;
}

/** The waiting or running call of its handler. */
export interface EntityCall {
  job_id: string;
  kind: "signals" | "migrate";
  attempt: number;
  state: JobState;
  worker_id: string | null;
  /** The error of the last failed attempt. */
  error: unknown;
  retry_at: TimeOrNull;
}

export interface EntityItem {
  type: string;
  id: EntityIdText;
  /** Increases by one with every accepted result of its handler. */
  version: number;
  generation: number;
  /** The type version that the entity is on. */
  type_version: number;
  /** Number of waiting signals. */
  inbox: number;
  /** The last signal received. */
  last_seq: number;
  /** The last signal applied. */
  consumed_seq: number;
  /** Number of events in its timeline. */
  events: number;
  created_at: string;
  active_at: string;
  finished_at: TimeOrNull;
  /** The version that it is migrating to. */
  migrating_to: number | null;
}

export interface Entity {
  type: string;
  id: EntityIdText;
  /** Increases by one with every accepted result of its handler. */
  version: number;
  generation: number;
  /** The type version that the entity is on. */
  type_version: number;
  /** Number of waiting signals. */
  inbox: number;
  /** The last signal received. */
  last_seq: number;
  /** The last signal applied. */
  consumed_seq: number;
  /** Number of events in its timeline. */
  events: number;
  created_at: string;
  active_at: string;
  finished_at: TimeOrNull;
  /** The version that it is migrating to. */
  migrating_to: number | null;
  status: EntityStatus;
  /** The state that its handler returned last; null before that. */
  state: unknown;
  /** The version of the type whose handler wrote the state. */
  state_version: number | null;
  timers: EntityTimer[];
  dedup: EntityDedup;
  call: EntityCall | null;
}

export interface EntityPage {
  items: EntityItem[];
  next_cursor: NextCursor;
}

export interface EntityEvent {
  seq: number;
  type:
    | "entity.created"
    | "entity.signaled"
    | "entity.timer_due"
    | "entity.called"
    | "entity.handled"
    | "entity.call_released"
    | "entity.call_failed"
    | "entity.blocked"
    | "entity.unblocked"
    | "entity.rolled_over"
    | "entity.migration_requested"
    | "entity.migrated"
    | "entity.finished"
    | "entity.reopened"
    | "entity.deleted"
    | "entity.run_started"
    | "entity.run_refused"
    | "event.emitted"
    | "job.stale_result";
  at: string;
  data: unknown;
}

export interface EntityEventPage {
  items: EntityEvent[];
  next_cursor: NextCursor;
}

/** The initial record of a generation. */
export interface EntityGeneration {
  generation: number;
  reason: "created" | "rolled_over" | "migrated" | "reopened";
  type_version: number;
  state: unknown;
  version: number;
  consumed_seq: number;
  timers: EntityTimer[];
  dedup: unknown;
  first_event: number;
  at: string;
}

export interface EntityGenerationPage {
  items: EntityGeneration[];
  next_cursor: NextCursor;
}

export interface MigrateEntity {
  /** Absent: the newest. */
  version?: number | null;
}

export interface MigratedEntity {
  /** Migrated: the entity already has that version. */
  status: "migrating" | "migrated";
  from: number;
  to: number;
}

export interface DeletedEntity {
  type: string;
  id: EntityIdText;
  deleted: true;
}

export interface EntityName {
  type: string;
  id: EntityIdText;
}

/** The input of an entity's handler, the same in every attempt. */
export interface EntityInput {
  kind: "signals" | "migrate";
  entity: EntityName;
  /** Null at first, and after the entity was finished. */
  state: unknown;
  version: number;
  generation: number;
  type_version: number;
  /** The version of the type whose handler wrote the state. */
  state_version: number | null;
  /** Kind migrate: the old version. */
  from_version?: number;
  /** Kind migrate: the new version. */
  to_version?: number;
  /** The waiting signals in order; empty if only timers are due or the entity migrates. */
  signals: Array<{
    seq: number;
    name: string;
    payload: unknown;
    at: string;
    /** True for an update: its sender waits for a result. */
    update?: true;
  }>;
  /** The timers that are due. */
  timers: EntityTimer[];
  /** True if more signals are waiting. */
  more: boolean;
}

/** The result of an entity's handler. */
export interface EntityAnswer {
  /** The new state, any JSON value of at most 256 KiB; if absent, the state is unchanged. */
  state?: unknown;
  /** Replaces an existing timer of the same name. */
  set_timers?: Array<{
    name: string;
    /** From now; set either in_ms or at. */
    in_ms?: number;
    at?: string;
    payload?: unknown;
  }>;
  cancel_timers?: string[];
  emit?: Array<{ event: string; payload?: unknown }>;
  /** Runs to start. */
  start?: Array<{ workflow_id: string; input?: unknown; labels?: Labels; idempotency_key?: IdempotencyKeyText }>;
  /** Results of the updates among the signals. */
  results?: Array<{
    seq: number;
    /** At most 64 KiB. */
    result?: unknown;
    error?: UpdateError;
  }>;
  finished?: boolean;
}

/** A bucket of the histogram. */
export interface EntityAge {
  /** For people. */
  age: string;
  /** Null: unbounded. */
  up_to_s: number | null;
}

export type EntityAgeOrNull = EntityAge | null;

export interface EntityTypeStats {
  type: string;
  since: TimeOrNull;
  /** Of the newest version. */
  window_s: number;
  max_keys: number;
  /** All signals with a key, including duplicates. */
  signals_with_key: number;
  /** Signals whose key was known. */
  duplicates: number;
  /** Duplicates whose key was no longer remembered; they counted as new. */
  late_duplicates: number;
  /** Share of all duplicates. */
  late_share: number;
  evicted_by_age: number;
  evicted_by_count: number;
  /** The age within which half, 99% and all of the duplicates arrived. */
  duplicates_came_within: { p50: EntityAgeOrNull; p99: EntityAgeOrNull; max: EntityAgeOrNull };
  /** By the age of the key. */
  histogram: Array<{ age: string; up_to_s: number | null; duplicates: number; late: number }>;
}

export interface PutSchedule {
  workflow_id: string;
  /** Five fields, six with seconds first, or a word such as @hourly. */
  cron: string;
  /** A name from the time zone database. */
  timezone?: string | null;
  overlap?: "skip" | "queue" | "allow" | null;
  /** How late a missed time may still fire. */
  catch_up_s?: number | null;
  input?: unknown;
  paused?: boolean | null;
}

export interface Schedule {
  id: string;
  workflow_id: string;
  cron: string;
  timezone: string;
  overlap: "skip" | "queue" | "allow";
  catch_up_s: number;
  input: unknown;
  paused: boolean;
  next_times: string[];
  last_time: TimeOrNull;
  last_run_id: string | null;
  /** Null, or {code, message, time}: why the last time started no run. */
  last_error: unknown;
  created_by: string;
  created_at: string;
  updated_at: string;
}

export interface SchedulePage {
  items: Schedule[];
  next_cursor: NextCursor;
}

export interface Triggered {
  schedule_id: string;
  run_id: string;
}

export interface Deleted {
  id: string;
  deleted: boolean;
}

/** An event type, a family such as `run.*`, or `*`. */
export type EventPattern = string;

export interface CreateWebhook {
  /** Http or https, without a user. */
  url: string;
  events: EventPattern[];
  description?: string | null;
}

export interface PutWebhook {
  url?: string | null;
  events?: EventPattern[] | null;
  description?: string | null;
  enabled?: boolean | null;
}

export interface RotateWebhook {
  /** How long pawl also signs with the old secret. */
  old_secret_s?: number | null;
}

export interface Webhook {
  id: string;
  url: string;
  events: EventPattern[];
  description: string | null;
  enabled: boolean;
  disabled_at: TimeOrNull;
  /** Why: a user disabled it, the receiver responded with 410, failed for five days, or too many deliveries were waiting. */
  disabled_reason: string | null;
  /** No attempt has succeeded since. */
  failing_since: string | null;
  /** Pawl also signs with the previous secret until then. */
  old_secret_until: string | null;
  created_by: string;
  created_at: string;
  updated_at: string;
}

export interface CreatedWebhook {
  id: string;
  url: string;
  events: EventPattern[];
  description: string | null;
  enabled: boolean;
  disabled_at: TimeOrNull;
  /** Why: a user disabled it, the receiver responded with 410, failed for five days, or too many deliveries were waiting. */
  disabled_reason: string | null;
  /** No attempt has succeeded since. */
  failing_since: string | null;
  /** Pawl also signs with the previous secret until then. */
  old_secret_until: string | null;
  created_by: string;
  created_at: string;
  updated_at: string;
  /** Not in a replay. */
  secret?: string;
}

export interface WebhookPage {
  items: Webhook[];
  next_cursor: NextCursor;
}

export interface DeletedWebhook {
  id: string;
  deleted: true;
}

export interface Delivery {
  id: string;
  /** The webhook-id of the delivery. */
  event_id: string;
  event_type: string;
  state: "pending" | "sending" | "delivered" | "failed";
  attempts: number;
  /** The receiver's status; null if there was no response. */
  last_status: number | null;
  last_error: string | null;
  next_attempt_at: TimeOrNull;
  created_at: string;
  finished_at: TimeOrNull;
}

export interface DeliveryPage {
  items: Delivery[];
  next_cursor: NextCursor;
}

export interface PutWorkflowResult {
  id: string;
  version: number;
  /** Whether this request created the version. */
  created: boolean;
  warnings: Fault[];
}

export interface ValidationReport {
  valid: boolean;
  errors: Fault[];
  /** Features that this version of pawl can check but not run. */
  warnings: Fault[];
}

export interface StoredWorkflow {
  id: string;
  version: number;
  latest_version: number;
  archived: boolean;
  digest: string;
  definition: Definition;
  created_by: string;
  created_at: string;
}

export interface WorkflowHead {
  id: string;
  /** The newest. */
  version: number;
  description: string | null;
  archived: boolean;
  archived_at: TimeOrNull;
  created_at: string;
  updated_at: string;
}

export interface WorkflowVersion {
  version: number;
  digest: string;
  created_by: string;
  created_at: string;
}

export interface WorkflowPage {
  items: WorkflowHead[];
  next_cursor: NextCursor;
}

export interface WorkflowVersionPage {
  items: WorkflowVersion[];
  next_cursor: NextCursor;
}

/** How a start waits for an admission gate that another start holds, before it gets 503 ADMISSION_GATE_UNAVAILABLE. In this version the gate is the store's own transaction and no start waits: settings other than the defaults would have no effect and are rejected with 400 FIELD_INVALID. */
export interface Gate {
  max_wait_ms: number;
  lock_ttl_ms: number;
  retry_delay_ms: number;
  policy: "fixed" | "full_jitter" | "equal_jitter" | "decorrelated";
}

/** How fast runs may be started. Only starts that create a run count; replays, coalesced and rejected starts do not. */
export interface RateLimitSetting {
  per_second: number;
  /** How many at once after a pause. */
  burst: number;
}

export interface TenantSettings {
  name?: string | null;
  /** Null: no limit. */
  max_concurrent_runs?: number | null;
  /** Null: 1,000,000. */
  max_queued_runs?: number | null;
  /** Applies unless the request or the workflow's limit says otherwise; null: reject. */
  at_limit?: AtLimit | null;
  /** Null: forever. */
  idempotency_retention_s?: number | null;
  /** For ended runs; null: forever. */
  run_retention_s?: number | null;
  /** Replaced as a whole; members that are absent or null get their defaults. */
  gate?: {
    max_wait_ms?: number | null;
    lock_ttl_ms?: number | null;
    retry_delay_ms?: number | null;
    policy?: "fixed" | "full_jitter" | "equal_jitter" | "decorrelated" | null;
  } | null;
  rate_limit?: RateLimitSetting | null;
  /** The tenant's share of workers that serve all tenants, and of turns when many queued runs can start. */
  weight?: number | null;
}

export interface Tenant {
  id: string;
  name: string | null;
  /** Null: no limit. */
  max_concurrent_runs: number | null;
  /** Null: 1,000,000. */
  max_queued_runs: number | null;
  at_limit: AtLimit;
  /** Null: forever. */
  idempotency_retention_s: number | null;
  /** Null: forever. */
  run_retention_s: number | null;
  gate: Gate;
  rate_limit: RateLimitSetting | null;
  weight: number;
  /** Increases by one with each change of the settings. */
  settings_version: number;
  /** Runs that hold a slot. */
  active_runs: number;
  /** Runs waiting for a slot. */
  queued_runs: number;
  created_at: string;
  updated_at: string;
}

export interface TenantPage {
  items: Tenant[];
  next_cursor: NextCursor;
}

export interface RollbackTenant {
  /** The version to restore; absent: the previous one. */
  version?: number | null;
}

export interface SettingsVersion {
  version: number;
  /** Whether it is the current version. */
  current: boolean;
  /** All of them, as PUT takes them. */
  settings: {
    name: string | null;
    max_concurrent_runs: number | null;
    max_queued_runs: number | null;
    at_limit: AtLimit;
    idempotency_retention_s: number | null;
    run_retention_s: number | null;
    gate: Gate;
    rate_limit: RateLimitSetting | null;
    weight: number;
  };
  at: string;
  /** Who set them; for the defaults of a new tenant, who first changed them. */
  actor: string;
}

export interface SettingsPage {
  items: SettingsVersion[];
  next_cursor: NextCursor;
}

export interface CreateKey {
  role: Role;
  /** Default: the caller's tenant, or `default` for a caller of all tenants. `*` means all tenants; only for viewers, workers and admins. */
  tenant?: string | null;
  /** A label for people. */
  label?: string | null;
}

export interface ApiKey {
  id: string;
  prefix: string;
  tenant: string;
  role: Role;
  label: string | null;
  created_by: string;
  created_at: string;
  /** To the minute. */
  last_used_at: string | null;
  revoked_at: TimeOrNull;
}

export interface CreatedApiKey {
  id: string;
  /** The key itself, only in the first response. */
  key?: string;
  prefix: string;
  tenant: string;
  role: Role;
  label: string | null;
  created_by: string;
  created_at: string;
  last_used_at: TimeOrNull;
  revoked_at: TimeOrNull;
}

export interface RevokedApiKey {
  id: string;
  revoked: true;
}

export interface ApiKeyPage {
  items: ApiKey[];
  next_cursor: NextCursor;
}

export interface IdempotencyRecord {
  key: IdempotencyKeyText;
  method: "POST" | "PUT" | "DELETE";
  /** The first request's path, decoded, without its query. */
  route: string;
  /** Over method, path and canonical JSON of the body. */
  fingerprint: string;
  /** The run that the first request created or, with coalesce, joined. */
  run_id: string | null;
  /** The status of the stored response. */
  status: number;
  replays: number;
  mismatches: number;
  created_at: string;
  last_replayed_at: TimeOrNull;
  /** Null: never. */
  expires_at: string | null;
}

export interface AuditEntry {
  /** `*`: the server itself. */
  tenant: string;
  /** From 1 without gaps. */
  seq: number;
  at: string;
  /** The actor. */
  actor: string;
  /** The client's address. */
  peer: string;
  action: string;
  /** The object that was changed. */
  target: string;
  /** Details of the action, or null. */
  detail: unknown;
  /** Over this entry and the previous hash. */
  hash: string;
}

export interface AuditPage {
  items: AuditEntry[];
  next_cursor: string | null;
}

export interface AuditVerdict {
  ok: boolean;
  /** Number of entries checked. */
  checked: number;
  /** The first broken entry, or null. */
  broken: null | { tenant: string | null; seq: number; at: TimeOrNull; what: "changed" | "missing" | "added" };
  /** The end of the chain, to be stored elsewhere; null if the chain is empty or every chain was checked. */
  head: null | { seq: number; hash: string };
}

export interface DoctorReport {
  checks: DoctorCheck[];
  ok: boolean;
}

export interface DoctorCheck {
  name:
    | "file"
    | "objects"
    | "slots"
    | "queue"
    | "runs"
    | "jobs"
    | "approvals"
    | "entities"
    | "webhooks"
    | "idempotency"
    | "indexes"
    | "audit";
  /** What differs, the first hundred of each kind. */
  found: DoctorFinding[];
  ok: boolean;
  /** How many objects were checked. */
  checked: number;
  /** What the check verifies. */
  detail: string;
}

export interface DoctorFinding {
  /** For people; of the check `file` a line of SQLite's integrity check. */
  what: string;
  tenant?: string;
  run_id?: string;
  entity_type?: string;
  entity_id?: string;
  /** The place in a chain of the audit. */
  seq?: number;
  /** The stored value that is wrong. */
  kept?: number;
  /** The correct value. */
  counted?: number;
  /** A repair can fix it. */
  repairable: boolean;
}

export type Repair = Record<string, unknown>;

export interface RepairReport {
  /** Slots, queue, jobs, entities and indexes as they were before the repair. */
  checks: DoctorCheck[];
  /** How many differences were fixed. */
  repaired: number;
  /** No difference is left in these checks. */
  ok: boolean;
}

export interface Health {
  status: "ok";
  version: string;
}

export interface Outbox {
  bus: {
    /** Nats, or null without a bus. */
    kind: string | null;
    status: "ok" | "failing" | "none";
    /** What is wrong. */
    detail: string;
  };
  /** Events that the bus has not acknowledged yet. */
  depth: number;
  /** Age of the oldest of them. */
  lag_ms: number;
  items: ParkedMessage[];
  next_cursor: NextCursor;
}

export interface ParkedMessage {
  message_id: string;
  /** An event, or the offer of a job to workers. */
  kind: "event" | "offer";
  tenant: string;
  /** The event type. */
  type: string;
  reason: string;
  attempts: number;
  parked_at: string;
  /** A retry was requested and the message is about to be sent. */
  retrying: boolean;
}

export interface Retrying {
  message_id: string;
  retrying: true;
}

export interface Readiness {
  status: "ready" | "not_ready";
  dependencies: {
    /** If a bus is configured. A server whose bus is failing is still ready: it accepts work and keeps unpublished events. */
    bus?: {
      status: "ok" | "failing";
      kind: "nats";
      /** What is wrong. */
      detail: string;
      /** Events that it has not acknowledged yet. */
      waiting: number;
    };
    gate: {
      status: "ok" | "failing";
      /** Store: the store's own transaction. */
      kind: string;
    };
    store: {
      status: "ok" | "failing";
      /** For example SQLite 3.40.1. */
      engine: string;
      detail: string;
    };
  };
}
