/** Entity handlers: one function per signal and timer, and the result that they make together. */

import type { Workflow } from "../definition.js";
import { toMs, type Duration } from "../duration.js";
import type { EntityAnswer, EntityInput, EntityName, EntityTimer, Labels } from "../wire.js";
import type { TaskContext } from "./context.js";
import { TaskError } from "./errors.js";

/** A signal as a handler gets it. */
export type EntitySignal = EntityInput["signals"][number];

/**
 * What the handler of a signal or timer may do beside changing the state. Everything takes effect together, when the
 * whole call is applied.
 */
export interface EntityContext<State> {
  /** The state: change it in place, or replace it. */
  state: State;
  readonly entity: EntityName;
  /** The signal at hand; undefined for a timer. */
  readonly signal: EntitySignal | undefined;
  /** The timer at hand; undefined for a signal. */
  readonly timer: EntityTimer | undefined;
  /** The job of this call. */
  readonly task: TaskContext;
  /** Sets a timer, or replaces the one of this name. */
  setTimer(name: string, due: Duration | Date, payload?: unknown): void;
  cancelTimer(name: string): void;
  /** Publishes an event of your own. */
  emit(event: string, payload?: unknown): void;
  /** Starts a run, exactly once. */
  start(workflow: Workflow | string, input?: unknown, options?: { labels?: Labels; idempotency_key?: string }): void;
  /** The entity expects no more signals. */
  finish(): void;
  /** Rejects an update, and undoes what its handler did so far. Throws: nothing after it runs. */
  reject(code: string, message?: string): never;
}

/** Handles a signal. For an update, what it returns is the result that the sender gets. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- each signal has a payload of its own type
export type SignalHandler<State> = (payload: any, entity: EntityContext<State>) => unknown;

/** The handlers of an entity type. */
export interface EntityHandlers<State> {
  /** The state of a new entity. */
  initial: () => State;
  /** One function per signal. */
  signals: Record<string, SignalHandler<State>>;
  /** One function per timer. */
  timers?: Record<string, SignalHandler<State>>;
  /** Makes a state of the new version. */
  migrate?: (state: unknown, versions: { from: number; to: number }) => State | Promise<State>;
}

class Rejection {
  constructor(readonly error: { code: string; message?: string }) {}
}

/** Collects what the handlers of one call do. A rejection goes back to the copy made before its handler. */
class EntityCall<State> {
  answer: EntityAnswer = {};

  constructor(
    public state: State,
    readonly input: EntityInput,
    readonly task: TaskContext,
  ) {}

  async handle(handler: SignalHandler<State>, what: { signal?: EntitySignal; timer?: EntityTimer }): Promise<void> {
    const before = structuredClone({ state: this.state, answer: this.answer });
    const context = this.#context(what);
    let outcome: { result?: unknown; error?: { code: string; message?: string } };
    try {
      outcome = { result: (await handler((what.signal ?? what.timer)?.payload, context)) ?? null };
      this.state = context.state;
    } catch (thrown) {
      if (!(thrown instanceof Rejection)) throw thrown;
      ({ state: this.state, answer: this.answer } = before);
      outcome = { error: thrown.error };
    }
    if (what.signal?.update === true) (this.answer.results ??= []).push({ seq: what.signal.seq, ...outcome });
  }

  #context({ signal, timer }: { signal?: EntitySignal; timer?: EntityTimer }): EntityContext<State> {
    return {
      state: this.state,
      entity: this.input.entity,
      signal,
      timer,
      task: this.task,
      setTimer: (name, due, payload) => {
        this.#setTimer(name, due, payload);
      },
      cancelTimer: (name) => {
        this.#dropTimer(name);
        (this.answer.cancel_timers ??= []).push(name);
      },
      emit: (event, payload) => {
        (this.answer.emit ??= []).push(payload === undefined ? { event } : { event, payload });
      },
      start: (workflow, input, options) => {
        const workflow_id = typeof workflow === "string" ? workflow : workflow.id;
        (this.answer.start ??= []).push({ workflow_id, ...(input === undefined ? {} : { input }), ...options });
      },
      finish: () => {
        this.answer.finished = true;
      },
      reject: (code, message) => {
        throw new Rejection(message === undefined ? { code } : { code, message }); // eslint-disable-line @typescript-eslint/only-throw-error -- no error: caught right here
      },
    };
  }

  /** The last word on a timer counts: one result cannot both set and cancel it. */
  #setTimer(name: string, due: Duration | Date, payload: unknown): void {
    this.#dropTimer(name);
    const when = due instanceof Date ? { at: due.toISOString() } : { in_ms: toMs(due) };
    (this.answer.set_timers ??= []).push({ name, ...when, ...(payload === undefined ? {} : { payload }) });
  }

  #dropTimer(name: string): void {
    const { set_timers, cancel_timers } = this.answer;
    if (set_timers !== undefined) this.answer.set_timers = set_timers.filter((timer) => timer.name !== name);
    if (cancel_timers !== undefined) this.answer.cancel_timers = cancel_timers.filter((timer) => timer !== name);
  }
}

/** Runs the handlers over a call: due timers first, then the signals in order. */
export async function answerCall<State>(
  handlers: EntityHandlers<State>,
  input: EntityInput,
  task: TaskContext,
): Promise<EntityAnswer> {
  if (input.kind === "migrate") return migrated(handlers, input);
  const call = new EntityCall<State>((input.state ?? handlers.initial()) as State, input, task);
  for (const timer of input.timers) await call.handle(handlerOf(handlers.timers, timer.name, "timer"), { timer });
  for (const signal of input.signals) await call.handle(handlerOf(handlers.signals, signal.name, "signal"), { signal });
  const lists = Object.entries(call.answer).filter(([, value]) => !Array.isArray(value) || value.length > 0);
  return { state: call.state, ...Object.fromEntries(lists) };
}

async function migrated<State>(handlers: EntityHandlers<State>, input: EntityInput): Promise<EntityAnswer> {
  if (handlers.migrate === undefined) throw noHandler("migration", `to version ${input.to_version ?? 0}`);
  return { state: await handlers.migrate(input.state, { from: input.from_version ?? 0, to: input.to_version ?? 0 }) };
}

function handlerOf<State>(
  handlers: Record<string, SignalHandler<State>> | undefined,
  name: string,
  kind: string,
): SignalHandler<State> {
  const handler = handlers !== undefined && Object.hasOwn(handlers, name) ? handlers[name] : undefined;
  if (handler === undefined) throw noHandler(kind, name);
  return handler;
}

function noHandler(kind: string, name: string): TaskError {
  return new TaskError("NO_HANDLER", `This worker has no handler for the ${kind} ${name}`, { retryable: false });
}
