export { TaskContext, type ApprovedContent, type DurableStepOptions, type StepContext } from "./context.js";
export type { EntityContext, EntityHandlers, EntitySignal, SignalHandler } from "./entity.js";
export { JobStoppedError, StepError, TaskError } from "./errors.js";
export { Worker, type DurableOptions, type WorkerOptions } from "./worker.js";
