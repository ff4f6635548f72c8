/** The TypeScript library of pawl. */

export { Client, type ClientOptions, type EventsOptions, type StartOptions, type TenantEvent } from "./client.js";
export {
  step,
  workflow,
  Workflow,
  type ApprovalOptions,
  type Compensation,
  type Definition,
  type HttpRequest,
  type Refs,
  type RetryPolicy,
  type StepDefinition,
  type StepOptions,
  type TaskOptions,
  type WorkflowOptions,
} from "./definition.js";
export { toMs, type Duration } from "./duration.js";
export {
  ApiError,
  ApprovalConflictError,
  ConflictError,
  ForbiddenError,
  InvalidRequestError,
  KeyReusedError,
  LeaseLostError,
  LimitReachedError,
  NoAnswerError,
  NotFoundError,
  PawlError,
  RunFailedError,
  ServerFaultError,
  UnauthenticatedError,
  UnavailableError,
  WaitTimeoutError,
  type ApiErrorOf,
  type ProblemDetails,
  type ProblemOf,
} from "./errors.js";
export { expr, Expression, type Ref } from "./expression.js";
export {
  Admin,
  Approvals,
  Entities,
  Jobs,
  Pages,
  Runs,
  Schedules,
  Server,
  Webhooks,
  Workflows,
  type BulkOptions,
  type Claimed,
  type DecideOptions,
  type ListOptions,
  type Page,
  type ResetEvent,
  type RunFilter,
  type SignalOptions,
  type Suspension,
  type UpdateOptions,
  type WorkerCallOptions,
} from "./resources/index.js";
export { RetryBudget, type Clock, type Jitter, type RetryOptions } from "./retry.js";
export { RunHandle, type WaitOptions, type WatchOptions } from "./run.js";
export type { ChangeOptions, RequestOptions, RunChangeOptions, TransportOptions } from "./transport.js";
export {
  verifyWebhook,
  WebhookError,
  type VerifyOptions,
  type WebhookEvent,
  type WebhookFault,
  type WebhookHeaders,
} from "./webhook.js";
export * from "./worker/index.js";
export type * from "./wire.js";
