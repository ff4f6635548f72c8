/** The client: everything that the server can do, over `fetch`. */

import { Workflow, type Definition } from "./definition.js";
import { toMs, type Duration } from "./duration.js";
import {
  Admin,
  Approvals,
  changeRequest,
  Entities,
  Jobs,
  Runs,
  Schedules,
  segment,
  Server,
  split,
  Webhooks,
  Workflows,
} from "./resources/index.js";
import { RunHandle, type WaitOptions } from "./run.js";
import { follow } from "./stream.js";
import { checkKey, keyHeader, Transport, type ChangeOptions, type RequestOptions } from "./transport.js";
import type { TransportOptions } from "./transport.js";
import type { AtLimit, Labels, PutWorkflowResult, StartedRun } from "./wire.js";

/** Options of a client. */
export type ClientOptions = TransportOptions;

/** Options of a start. */
export interface StartOptions extends ChangeOptions {
  labels?: Labels;
  /** −100 to 100; higher goes first. */
  priority?: number;
  /** What to do at a limit; default: what the workflow or the tenant says. */
  at_limit?: AtLimit;
  /** When to start; default: now. */
  start_at?: string | Date;
  /** How long the answer waits for the end of the run, at most 60 s; `handle.started` then shows how it ended. */
  wait?: Duration;
}

/** An event of a tenant: a CloudEvents 1.0 object, and its cursor. */
export interface TenantEvent {
  /** Continues a stream after this event. */
  cursor: string;
  id: string;
  source: string;
  type: string;
  subject: string;
  time: string;
  data: unknown;
}

/** Options of the stream of a tenant's events. */
export interface EventsOptions extends RequestOptions {
  /** Types such as `run.failed`, or families such as `run.*`; default: all. */
  types?: string[];
  /** Continues after this cursor; `0-0` is the very beginning. Default: new events only. */
  after?: string;
}

/** The longest that the server waits in one request for a run to end. */
const WAIT_MS = 30_000;

/**
 * A client of a server. Every change carries an idempotency key, so it is retried safely: after a lost connection, a
 * restart of the server, a 429 or a 503.
 *
 * @example
 * ```ts
 * const client = new Client({ url: process.env.PAWL_URL ?? "http://127.0.0.1:7295", tenant: "default" });
 * const run = await client.start("greet", { name: "Ada" }, { key: "greet-ada" });
 * console.log(await run.result()); // { text: 'Hello, Ada!' }
 * ```
 */
export class Client {
  readonly transport: Transport;
  /** Stored workflows. */
  readonly workflows: Workflows;
  /** Runs as a list; `client.run(id)` is one run. */
  readonly runs: Runs;
  /** Decisions by people. */
  readonly approvals: Approvals;
  /** Entities and their types. */
  readonly entities: Entities;
  /** Runs at set times. */
  readonly schedules: Schedules;
  /** Events sent to your URLs. */
  readonly webhooks: Webhooks;
  /** Jobs, queues, workers, dead letters. */
  readonly jobs: Jobs;
  /** Tenants, API keys, idempotency keys, audit, doctor. */
  readonly admin: Admin;
  /** Health, readiness, metrics. */
  readonly server: Server;

  constructor(options: ClientOptions = {}) {
    this.transport = new Transport(options);
    this.workflows = new Workflows(this.transport);
    this.runs = new Runs(this.transport);
    this.approvals = new Approvals(this.transport);
    this.entities = new Entities(this.transport);
    this.schedules = new Schedules(this.transport);
    this.webhooks = new Webhooks(this.transport);
    this.jobs = new Jobs(this.transport);
    this.admin = new Admin(this.transport);
    this.server = new Server(this.transport);
  }

  /**
   * The same client for another tenant.
   *
   * @example
   * ```ts
   * const acme = client.withTenant("acme");
   * console.log((await acme.workflows.list().all()).length); // 0
   * ```
   */
  withTenant(tenant: string): Client {
    return new Client({ ...this.transport.options, tenant });
  }

  /**
   * Stores a workflow. A changed definition makes a new version, an equal one does not, so call it at every start of your
   * program.
   *
   * @example
   * ```ts
   * const nap = workflow("nap-of-docs", [step.sleep("nap", "10ms")]);
   * console.log((await client.apply(nap)).version); // 1
   * ```
   */
  apply(workflow: Workflow | (Definition & { id: string }), options: ChangeOptions = {}): Promise<PutWorkflowResult> {
    return this.workflows.put(workflow.id, workflow, options);
  }

  /**
   * Starts a run. With a `key` of your own, starting again (after a crash, from a second process) returns the same run.
   *
   * @example
   * ```ts
   * const first = await client.start("greet", { name: "Ada" }, { key: "order-789" });
   * const again = await client.start("greet", { name: "Ada" }, { key: "order-789" });
   * console.log(again.created, again.id === first.id); // false true
   * ```
   */
  start<Input = unknown, Output = unknown>(
    workflow: Workflow<Input, Output> | string,
    input?: NoInfer<Input>,
    options: StartOptions = {},
  ): Promise<RunHandle<Output>> {
    return this.#start<Output>(idOf(workflow), input, options);
  }

  /**
   * Starts a run and waits for its output. A run that does not succeed is a `RunFailedError`.
   *
   * @example
   * ```ts
   * console.log(await client.execute("greet", { name: "Ada" }, { key: "greet-ada-once" })); // { text: 'Hello, Ada!' }
   * ```
   */
  async execute<Input = unknown, Output = unknown>(
    workflow: Workflow<Input, Output> | string,
    input?: NoInfer<Input>,
    options: Omit<StartOptions, "wait"> & WaitOptions = {},
  ): Promise<Output> {
    const { timeout, ...start } = options;
    const limit = timeout === undefined ? Infinity : toMs(timeout);
    const began = this.transport.clock.now();
    const handle = await this.#start<Output>(idOf(workflow), input, { ...start, wait: Math.min(WAIT_MS, limit) });
    const wait: WaitOptions = options.signal === undefined ? {} : { signal: options.signal };
    if (timeout !== undefined) wait.timeout = Math.max(0, limit - (this.transport.clock.now() - began));
    return handle.result(wait);
  }

  async #start<Output>(
    workflowId: string,
    input: unknown,
    { wait = 0, ...given }: StartOptions,
  ): Promise<RunHandle<Output>> {
    const waitMs = Math.ceil(toMs(wait));
    const [options, body] = split(given);
    const path = `/api/v1/workflows/${segment(workflowId)}/runs`;
    const request = changeRequest(this.transport, "POST", path, { input: input ?? undefined, ...body }, options);
    const { key = "" } = request;
    checkKey(key);
    if (keyHeader(key) === undefined) {
      delete request.key; // a header cannot carry it, the body can
      request.body = { ...request.body, idempotency_key: key };
    }
    if (waitMs > 0) Object.assign(request, { query: { wait_ms: waitMs }, waitMs });
    const { body: started } = await this.transport.send<StartedRun>(request);
    return new RunHandle<Output>(this.transport, started.run_id, started);
  }

  /**
   * A run that exists, by its id. Sends nothing.
   *
   * @example
   * ```ts
   * const { id } = await client.start("parcel");
   * await client.run(id).signal("lost");
   * ```
   */
  run<Output = unknown>(id: string): RunHandle<Output> {
    return new RunHandle<Output>(this.transport, id);
  }

  /**
   * The events of the whole tenant as they happen, until you stop. A broken connection is resumed. An event of type
   * `reset` says that events are missing, because they are no longer kept: read the current state again.
   *
   * @example
   * ```ts
   * await client.start("greet", { name: "Ada" });
   * for await (const event of client.events({ types: ["run.*"], after: "0-0" })) {
   *   console.log(event.type, event.subject);
   *   break;
   * }
   * ```
   */
  async *events(options: EventsOptions = {}): AsyncGenerator<TenantEvent, void> {
    const { types, after, signal } = options;
    const query = { types: types?.join(",") };
    const isComplete = (): Promise<boolean> => Promise.resolve(false);
    const lastId = after ?? null;
    for await (const message of follow(this.transport, { path: "/api/v1/events", query, lastId, signal, isComplete })) {
      const data: unknown = JSON.parse(message.data);
      const place = { cursor: message.id ?? "", type: message.event };
      if (message.event === "reset") yield { ...place, id: "", source: "", subject: "", time: "", data };
      else yield { ...place, ...(data as Omit<TenantEvent, "cursor">) };
    }
  }
}

function idOf(workflow: { id: string } | string): string {
  return typeof workflow === "string" ? workflow : workflow.id;
}
