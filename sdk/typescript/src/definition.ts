/** Workflow definitions as code. They produce the JSON of docs/workflows.md; members have the names they have there. */

import { toMs, type Duration } from "./duration.js";
import { Expression, ref, SOURCE, type Ref } from "./expression.js";
import type { ConcurrencyLimit } from "./wire.js";

/** A definition as the server stores it. */
export interface Definition {
  id?: string;
  description?: string;
  /** JSON Schema of the input; see docs/api.md for the keywords. */
  input_schema?: Record<string, unknown> | boolean;
  /** Time limit of a whole run, in seconds. */
  timeout_s?: number;
  /** How many runs may be active at once, per workflow or per key. */
  concurrency?: ConcurrencyLimit | ConcurrencyLimit[];
  /** How long, and how many, `dedup_key`s of signals are remembered. */
  signals?: { dedup_window_s?: number; dedup_max_keys?: number };
  steps: StepDefinition[];
}

/** How often and when a failed attempt is repeated. */
export interface RetryPolicy {
  /** Attempts in all; default 1. */
  max_attempts?: number;
  /** The delay before the second attempt; default 1000. */
  backoff_ms?: number;
  /** Default 2. */
  multiplier?: number;
  /** Default 300000. */
  max_backoff_ms?: number;
  /** Default `full`. */
  jitter?: "none" | "full" | "equal" | "decorrelated";
  /** Error codes that are never retried. */
  non_retryable?: string[];
}

/** A task that undoes a step when its run fails. */
export interface Compensation {
  handler: string;
  queue?: string;
  /** Default: `{input, output}` of the step. */
  input?: unknown;
}

/** What every step may have. */
export interface StepOptions {
  /** The steps that must be settled first. If no step has any, steps run in the order written. */
  needs?: string[];
  /** The step is skipped if this is false or nil. */
  when?: string | Expression;
  /** A list, or an expression that yields one: the step runs once for each element. */
  for_each?: unknown;
  max_parallel?: number;
  /** How often and when a failed attempt is repeated; a number is the number of attempts. */
  retry?: RetryPolicy | number;
  /** Time limit of one attempt. */
  timeout_ms?: number;
  /** `fail` (the default), `continue`, or the name of the step that handles the error. */
  on_error?: string;
  /** What undoes the step; a text is the name of the handler. */
  compensate?: string | Compensation;
}

/** Who decides, and until when. */
export interface ApprovalOptions {
  /** What is to be approved; a person may edit it. */
  content?: unknown;
  approvers?: { count?: number; forbid_requester?: boolean; roles?: string[]; users?: string[] };
  expires_s?: number;
  /** Default `reject`. */
  on_expire?: "reject" | "approve" | "fail";
  remind_every_s?: number;
  escalation?: { after_s: number; approvers: { roles?: string[]; users?: string[] } };
}

/** Options of a task. */
export interface TaskOptions extends StepOptions {
  /** Default `default`. */
  queue?: string;
  /** Default: the element of `for_each`, or the run's input. */
  input?: unknown;
  /** Whether a person must approve the task first. */
  requires_approval?: boolean | (ApprovalOptions & { prompt?: string });
}

/** A call that the server makes itself. */
export interface HttpRequest {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS";
  url: string | Expression;
  headers?: Record<string, unknown>;
  body?: unknown;
}

/** A step as the server stores it. {@link step} makes them. */
export interface StepDefinition extends Record<string, unknown> {
  name: string;
  type: "task" | "http" | "approval" | "sleep" | "wait_signal" | "transform" | "emit" | "workflow" | "llm";
  when?: string;
  compensate?: Compensation;
}

/** The options of a definition beside its steps. */
export interface WorkflowOptions extends Omit<Definition, "id" | "steps"> {
  /** The queue of its tasks, unless they name their own. */
  queue?: string;
}

/** What a definition may refer to. */
export interface Refs<Input> {
  /** The run's input. */
  readonly input: Ref<Input>;
  /** `steps.NAME.output`, `.error`, `.status`, `.attempt`. */
  readonly steps: Ref;
  readonly state: Ref;
  /** The element, in a step with `for_each`. */
  readonly item: Ref;
  /** `run.id`, `run.created_by`, `run.labels` … */
  readonly run: Ref;
}

/**
 * A workflow: its id and its definition, and the types of its input and output. {@link workflow} makes one.
 *
 * @example
 * ```ts
 * const hello = workflow<{ name: string }, string>("hello", ({ input }) => [
 *   step.transform("text", `Hello, ${input.name}!`),
 * ]);
 * await client.apply(hello);
 * const text: string = await client.execute(hello, { name: "Ada" });
 * ```
 */
export class Workflow<Input = unknown, Output = unknown> {
  /** Only for the compiler: keeps the types of input and output apart. */
  declare readonly types?: { input: Input; output: Output };

  constructor(
    readonly id: string,
    readonly definition: Definition,
  ) {}

  /** The definition with its id, so that `JSON.stringify` writes a file for `pawl workflow apply`. */
  toJSON(): Definition {
    return { id: this.id, ...this.definition };
  }
}

/**
 * Defines a workflow. Steps are given as a list, or by a function that gets references to the run's data.
 *
 * @example
 * ```ts
 * const order = workflow<{ id: string; amount: number }>("order-of-docs", ({ input, steps }) => [
 *   step.task("charge", "cards.charge", { retry: { max_attempts: 3 }, compensate: "cards.refund" }),
 *   step.approval("ok", `Ship ${input.id}?`, { when: expr`${input.amount} > 100` }),
 *   step.emit("tell", "order.paid", { id: input.id, charge: steps.charge.output }),
 * ]);
 * await client.apply(order);
 * ```
 */
export function workflow<Input = unknown, Output = unknown>(
  id: string,
  steps: StepDefinition[] | ((refs: Refs<Input>) => StepDefinition[]),
  { queue, ...options }: WorkflowOptions = {},
): Workflow<Input, Output> {
  const list = typeof steps === "function" ? steps(refs<Input>()) : steps;
  const queued = list.map((one) => (one.type === "task" && queue !== undefined ? { queue, ...one } : one));
  return new Workflow<Input, Output>(id, plain({ ...options, steps: queued }) as Definition);
}

function refs<Input>(): Refs<Input> {
  return { input: ref("input"), steps: ref("steps"), state: ref("state"), item: ref("item"), run: ref("run") };
}

/** Plain JSON: references become templates, members that are undefined are left out. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}

/**
 * Makes the steps of a definition: one function for each type of step. docs/workflows.md explains the types.
 *
 * @example
 * ```ts
 * const trip = workflow("trip-of-docs", [
 *   step.task("flight", "flights.book", { compensate: "flights.cancel" }),
 *   step.sleep("pause", "100ms"),
 *   step.task("hotel", "hotels.book", { timeout_ms: 30_000 }),
 * ]);
 * console.log(trip.definition.steps.map((s) => s.type)); // [ 'task', 'sleep', 'task' ]
 * ```
 */
export const step = {
  /**
   * A task for a worker.
   *
   * @example
   * ```ts
   * step.task("charge", "cards.charge", { queue: "payments", retry: { max_attempts: 5 }, compensate: "cards.refund" });
   * ```
   */
  task: (name: string, handler: string, options: TaskOptions = {}): StepDefinition =>
    made(name, "task", { handler }, options),

  /**
   * An HTTP call that the server makes, with the job's id as its idempotency key.
   *
   * @example
   * ```ts
   * step.http("tell", { method: "POST", url: "https://example.com/orders", body: { id: 1 } });
   * ```
   */
  http: (name: string, request: HttpRequest, options: StepOptions = {}): StepDefinition =>
    made(name, "http", { request }, options),

  /**
   * A question to a person. Its output is the approved content.
   *
   * @example
   * ```ts
   * step.approval("ok", "Pay it?", { approvers: { count: 2, forbid_requester: true }, expires_s: 86_400 });
   * ```
   */
  approval: (name: string, prompt: string | Expression, options: StepOptions & ApprovalOptions = {}): StepDefinition =>
    made(name, "approval", { prompt }, options),

  /**
   * A pause, or a wait until a time.
   *
   * @example
   * ```ts
   * step.sleep("a-while", "10m");
   * step.sleep("new-year", new Date("2030-01-01T00:00:00Z"));
   * ```
   */
  sleep: (name: string, until: Duration | Date | Expression, options: StepOptions = {}): StepDefinition =>
    made(name, "sleep", isTime(until) ? { until } : { duration_ms: toMs(until) }, options),

  /**
   * Waits for a signal, or for the first of several; with `wait_for: "all"` for one of each.
   *
   * @example
   * ```ts
   * step.waitSignal("arrival", ["delivered", "lost"], { timeout_ms: 86_400_000 });
   * ```
   */
  waitSignal: (
    name: string,
    signal: string | string[],
    options: StepOptions & { wait_for?: "first" | "all" } = {},
  ): StepDefinition => made(name, "wait_signal", { signal }, options),

  /**
   * Computes its output from templates; needs no worker.
   *
   * @example
   * ```ts
   * workflow<{ a: number }>("sum", ({ input }) => [step.transform("twice", { result: expr`${input.a} * 2` })]);
   * ```
   */
  transform: (name: string, output: unknown, options: StepOptions = {}): StepDefinition =>
    made(name, "transform", { output }, options),

  /**
   * Publishes an event of your own.
   *
   * @example
   * ```ts
   * step.emit("say", "order.large", { id: 7 });
   * ```
   */
  emit: (name: string, event: string, payload?: unknown, options: StepOptions = {}): StepDefinition =>
    made(name, "emit", { event, payload }, options),

  /**
   * A run of another workflow as a part of this one. Its output is the step's output.
   *
   * @example
   * ```ts
   * step.workflow("invoice", "send-invoice", { input: { id: 7 } });
   * ```
   */
  workflow: (
    name: string,
    child: string | Workflow,
    options: StepOptions & { version?: number; input?: unknown } = {},
  ): StepDefinition => made(name, "workflow", { workflow_id: typeof child === "string" ? child : child.id }, options),
};

function isTime(until: Duration | Date | Expression): until is Date | Expression {
  return until instanceof Date || until instanceof Expression;
}

function made(
  name: string,
  type: StepDefinition["type"],
  members: Record<string, unknown>,
  options: StepOptions,
): StepDefinition {
  const { when, for_each, compensate, retry, ...rest } = options;
  const definition: Record<string, unknown> = { name, type, ...members, ...rest };
  if (when !== undefined) definition.when = sourceOf(when);
  if (for_each !== undefined) definition.for_each = sourceOf(for_each);
  if (retry !== undefined) definition.retry = retryPolicy(retry);
  if (compensate !== undefined) {
    definition.compensate = typeof compensate === "string" ? { handler: compensate } : compensate;
  }
  return plain(definition) as StepDefinition;
}

/** The policy; a number is short for the number of attempts. */
export function retryPolicy(retry: RetryPolicy | number): RetryPolicy {
  return typeof retry === "number" ? { max_attempts: retry } : retry;
}

/** Where the server expects an expression, a reference stands for itself, without `${}`. */
function sourceOf(value: unknown): unknown {
  return value instanceof Expression ? value[SOURCE] : value;
}
