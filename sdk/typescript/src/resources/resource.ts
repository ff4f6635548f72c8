/** What the groups of routes share. */

import type { ChangeOptions, RequestOptions, RunChangeOptions, Transport, TransportRequest } from "../transport.js";

/** A page of a list, as the server sends it. */
export interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

/** Options of every list. */
export interface ListOptions extends RequestOptions {
  /** How many items a page has, 1 to 200; default 50. */
  limit?: number;
}

/**
 * A list that is read page by page, as it is iterated.
 *
 * @example
 * ```ts
 * for await (const run of client.runs.list({ workflow_id: "greet" })) console.log(run.id, run.status);
 * ```
 */
export class Pages<T> implements AsyncIterable<T> {
  readonly #read: (cursor?: string) => Promise<Page<T>>;

  /** Lists make it; there is no need to. */
  constructor(read: (cursor?: string) => Promise<Page<T>>) {
    this.#read = read;
  }

  /**
   * One page: the first, or the one that a cursor names.
   *
   * @example
   * ```ts
   * const first = await client.workflows.list({ limit: 1 }).page();
   * if (first.next_cursor !== null) console.log(await client.workflows.list({ limit: 1 }).page(first.next_cursor));
   * ```
   */
  page(cursor?: string): Promise<Page<T>> {
    return this.#read(cursor);
  }

  /**
   * All items. Mind the size of the list.
   *
   * @example
   * ```ts
   * const ids = (await client.workflows.list().all()).map((workflow) => workflow.id);
   * console.log(ids.includes("greet")); // true
   * ```
   */
  async all(): Promise<T[]> {
    const items: T[] = [];
    for await (const item of this) items.push(item);
    return items;
  }

  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    let page = await this.#read();
    yield* page.items;
    while (page.next_cursor !== null) {
      page = await this.#read(page.next_cursor);
      yield* page.items;
    }
  }
}

/** The part of a path that a value becomes. */
export const segment = encodeURIComponent;

export class Resource {
  constructor(protected readonly transport: Transport) {}

  protected async read<T>(path: string, query: object = {}, options: RequestOptions = {}): Promise<T> {
    const answer = await this.transport.send<T>({ method: "GET", path, query, signal: options.signal });
    return answer.body;
  }

  protected async change<T>(
    method: "POST" | "PUT" | "DELETE",
    path: string,
    body: object | undefined,
    options: RunChangeOptions = {},
    more: Partial<TransportRequest> = {},
  ): Promise<T> {
    const answer = await this.transport.send<T>(changeRequest(this.transport, method, path, body, options, more));
    return answer.body;
  }

  protected pages<T>(path: string, { signal, ...query }: ListOptions): Pages<T> {
    const options: RequestOptions = signal === undefined ? {} : { signal };
    return new Pages<T>((cursor) => this.read<Page<T>>(path, { ...query, cursor }, options));
  }
}

/** A request that changes something: it always has a key, so that it can be repeated. */
export function changeRequest(
  transport: Transport,
  method: "POST" | "PUT" | "DELETE",
  path: string,
  body: object | undefined,
  { key, if_match, signal }: RunChangeOptions,
  more: Partial<TransportRequest> = {},
): TransportRequest {
  const request: TransportRequest = { method, path, key: key ?? transport.newKey(), signal, ...more };
  if (if_match !== undefined) request.ifMatch = if_match;
  if (body !== undefined) request.body = body;
  return request;
}

/** Splits the options of the request from the members of its body. */
export function split<T extends RunChangeOptions>(given: T): [RunChangeOptions, Omit<T, keyof RunChangeOptions>] {
  const { key, signal, if_match, ...body } = given;
  const options: RunChangeOptions = {};
  if (key !== undefined) options.key = key;
  if (signal !== undefined) options.signal = signal;
  if (if_match !== undefined) options.if_match = if_match;
  return [options, body];
}

export type { ChangeOptions, RequestOptions, RunChangeOptions };
