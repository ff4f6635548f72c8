export { Admin } from "./admin.js";
export { Approvals, type DecideOptions } from "./approvals.js";
export { Entities, type ResetEvent, type SignalOptions, type UpdateOptions } from "./entities.js";
export {
  Jobs,
  type Claimed,
  type DurableJob,
  type ResumedBy,
  type StoredCheckpoint,
  type SuspendedJob,
  type Suspension,
  type WorkerCallOptions,
} from "./jobs.js";
export { changeRequest, Pages, Resource, segment, split, type ListOptions, type Page } from "./resource.js";
export { Runs, type BulkOptions, type RunFilter } from "./runs.js";
export { Schedules } from "./schedules.js";
export { Server } from "./server.js";
export { Webhooks } from "./webhooks.js";
export { Workflows } from "./workflows.js";
