/** Entities: long-lived objects with a state, signals and timers. docs/entities.md is the guide. */

import { toMs, type Duration } from "../duration.js";
import { follow } from "../stream.js";
import type {
  DeletedEntity,
  Entity,
  EntityEvent,
  EntityGeneration,
  EntityItem,
  EntityType,
  EntityTypeItem,
  EntityTypeStats,
  EntityUpdate,
  EntityUpdateResult,
  MigratedEntity,
  PutEntityType,
  PutEntityTypeResult,
  SignaledEntity,
} from "../wire.js";
import { Pages, Resource, segment, type ChangeOptions, type ListOptions, type RequestOptions } from "./resource.js";

/** Options of a signal. */
export interface SignalOptions extends ChangeOptions {
  /** Names what happened: the same key again is the same signal, whoever sends it. */
  dedup_key?: string;
}

/** Events after the one that you have are no longer kept: read the current state again. */
export interface ResetEvent {
  type: "reset";
  data: unknown;
}

/** Options of an update. */
export interface UpdateOptions extends ChangeOptions {
  /** Names the update; the same key again gets the same result. Default: a random key. */
  dedup_key?: string;
  /** How long to wait for the handler, at most 60 s; default 10 s. */
  wait?: Duration;
}

const entityPath = (type: string, id: string): string => `/api/v1/entities/${segment(type)}/${segment(id)}`;
const typePath = (type: string): string => `/api/v1/entity-types/${segment(type)}`;

/** The routes of entities: `client.entities`. */
export class Entities extends Resource {
  /**
   * Creates an entity type, or changes it.
   *
   * @example
   * ```ts
   * await client.entities.defineType("cart", { queue: "default", handler: "cart", dedup_window_s: 86_400 });
   * ```
   */
  defineType(type: string, rules: PutEntityType, options: ChangeOptions = {}): Promise<PutEntityTypeResult> {
    return this.change("PUT", typePath(type), rules, options);
  }

  /**
   * A type with its rules and versions.
   *
   * @example
   * ```ts
   * console.log((await client.entities.type("rewards")).version);
   * ```
   */
  type(type: string, options: RequestOptions = {}): Promise<EntityType> {
    return this.read(typePath(type), {}, options);
  }

  /**
   * The types by name.
   *
   * @example
   * ```ts
   * console.log((await client.entities.types().all()).map((item) => item.type));
   * ```
   */
  types(options: ListOptions = {}): Pages<EntityTypeItem> {
    return this.pages("/api/v1/entity-types", options);
  }

  /**
   * How late duplicates arrive, to choose the deduplication window.
   *
   * @example
   * ```ts
   * console.log((await client.entities.stats("rewards")).late_duplicates);
   * ```
   */
  stats(type: string, options: RequestOptions = {}): Promise<EntityTypeStats> {
    return this.read(`${typePath(type)}/stats`, {}, options);
  }

  /**
   * Sends a signal. The first one creates the entity. Resolves when the signal is on disk.
   *
   * @example
   * ```ts
   * await client.entities.signal("rewards", "cust-1", "add-points", { points: 10 }, { dedup_key: "order-789" });
   * ```
   */
  signal(
    type: string,
    id: string,
    name: string,
    payload?: unknown,
    { dedup_key, ...options }: SignalOptions = {},
  ): Promise<SignaledEntity> {
    return this.change("POST", `${entityPath(type, id)}/signals`, { name, payload, dedup_key }, options);
  }

  /**
   * Sends a signal and waits for the handler's result. `status` is `waiting` if there was none in time: ask again with
   * the same `dedup_key`, or with {@link Entities.outcome}.
   *
   * @example
   * ```ts
   * const answer = await client.entities.update("rewards", "cust-2", "redeem", { points: 5 }, { dedup_key: "redeem-5" });
   * console.log(answer.status, answer.error?.code); // rejected TOO_FEW
   * ```
   */
  update(
    type: string,
    id: string,
    name: string,
    payload?: unknown,
    { dedup_key = this.transport.newKey(), wait = 10_000, ...options }: UpdateOptions = {},
  ): Promise<EntityUpdateResult> {
    const waitMs = Math.ceil(toMs(wait));
    const body = { name, payload, dedup_key };
    return this.change("POST", `${entityPath(type, id)}/updates`, body, options, {
      query: { wait_ms: waitMs },
      waitMs,
    });
  }

  /**
   * The outcome of an update, by its number.
   *
   * @example
   * ```ts
   * const { seq } = await client.entities.update("rewards", "cust-3", "redeem", { points: 1 });
   * console.log((await client.entities.outcome("rewards", "cust-3", seq)).status); // rejected
   * ```
   */
  outcome(type: string, id: string, seq: number, options: RequestOptions = {}): Promise<EntityUpdate> {
    return this.read(`${entityPath(type, id)}/updates/${seq}`, {}, options);
  }

  /**
   * An entity: its state, its timers, what waits for it.
   *
   * @example
   * ```ts
   * await client.entities.update("rewards", "cust-4", "add-points", { points: 10 });
   * console.log((await client.entities.get("rewards", "cust-4")).state); // { points: 10 }
   * ```
   */
  get(type: string, id: string, options: RequestOptions = {}): Promise<Entity> {
    return this.read(entityPath(type, id), {}, options);
  }

  /**
   * The entities of a type by id, without their states.
   *
   * @example
   * ```ts
   * for await (const { id, inbox } of client.entities.list("rewards")) console.log(id, inbox);
   * ```
   */
  list(type: string, options: ListOptions & { version?: number } = {}): Pages<EntityItem> {
    return this.pages(`/api/v1/entities/${segment(type)}`, options);
  }

  /**
   * The timeline of an entity, oldest first.
   *
   * @example
   * ```ts
   * await client.entities.signal("rewards", "cust-5", "add-points", { points: 1 });
   * const { items } = await client.entities.events("rewards", "cust-5").page();
   * console.log(items[0]?.type); // entity.created
   * ```
   */
  events(type: string, id: string, options: ListOptions = {}): Pages<EntityEvent> {
    return this.pages(`${entityPath(type, id)}/events`, options);
  }

  /**
   * The events of an entity as they happen, from the oldest that is kept, or after the event `after`. Ends when the
   * entity is deleted. A broken connection is resumed. An event of type `reset` says that events are missing, because
   * they are no longer kept.
   *
   * @example
   * ```ts
   * await client.entities.signal("rewards", "cust-6", "add-points", { points: 1 });
   * for await (const event of client.entities.watch("rewards", "cust-6")) {
   *   if (event.type === "entity.handled") break;
   * }
   * ```
   */
  async *watch(
    type: string,
    id: string,
    options: RequestOptions & { after?: number } = {},
  ): AsyncGenerator<EntityEvent | ResetEvent, void> {
    const { after, signal } = options;
    let deleted = false;
    const path = `${entityPath(type, id)}/events`;
    const lastId = after === undefined ? null : String(after);
    const isComplete = (): Promise<boolean> => Promise.resolve(deleted);
    for await (const message of follow(this.transport, { path, lastId, signal, isComplete })) {
      deleted = message.event === "entity.deleted";
      const data: unknown = JSON.parse(message.data);
      yield message.event === "reset" ? { type: "reset", data } : (data as EntityEvent);
    }
  }

  /**
   * The generations of an entity, newest first.
   *
   * @example
   * ```ts
   * await client.entities.signal("rewards", "cust-7", "add-points", { points: 1 });
   * console.log((await client.entities.generations("rewards", "cust-7").all()).length); // 1
   * ```
   */
  generations(type: string, id: string, options: ListOptions = {}): Pages<EntityGeneration> {
    return this.pages(`${entityPath(type, id)}/generations`, options);
  }

  /**
   * Moves an entity to another version of its type, the newest unless you name one.
   *
   * @example
   * ```ts
   * await client.entities.signal("rewards", "cust-8", "add-points", { points: 1 });
   * console.log((await client.entities.migrate("rewards", "cust-8")).status); // migrated
   * ```
   */
  migrate(
    type: string,
    id: string,
    { version, ...options }: ChangeOptions & { version?: number } = {},
  ): Promise<MigratedEntity> {
    return this.change("POST", `${entityPath(type, id)}/migrate`, { version }, options);
  }

  /**
   * Permanently deletes an entity with everything it has.
   *
   * @example
   * ```ts
   * await client.entities.signal("rewards", "cust-9", "add-points", { points: 1 });
   * console.log((await client.entities.delete("rewards", "cust-9")).deleted); // true
   * ```
   */
  delete(type: string, id: string, options: ChangeOptions = {}): Promise<DeletedEntity> {
    return this.change("DELETE", entityPath(type, id), undefined, options);
  }
}
