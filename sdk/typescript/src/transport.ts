/**
 * Sends requests: adds credentials and keys, retries what may be retried under the same key, and turns problems into
 * errors. Needs nothing but `fetch`.
 */

import { apiError, ApiError, NoAnswerError } from "./errors.js";
import { Backoff, RetryBudget, systemClock, type Clock, type RetryOptions } from "./retry.js";
import type { Problem, ProblemCode } from "./wire.js";

/** How to reach a server. */
export interface TransportOptions {
  /** The server; default `PAWL_URL`, in a browser the page's origin, otherwise http://127.0.0.1:7295. */
  url?: string;
  /** The API key; default `PAWL_API_KEY`. */
  apiKey?: string;
  /** The tenant to act for; default `PAWL_TENANT`. A key for one tenant needs none. */
  tenant?: string;
  /** Your name, for a server in development mode; default `PAWL_ACTOR`. */
  actor?: string;
  /** Headers for every request, such as `traceparent`. */
  headers?: Record<string, string>;
  /** How long one attempt may take, in milliseconds, beyond what the request itself waits for; default 30000. */
  timeoutMs?: number;
  /** How to retry. */
  retry?: RetryOptions;
  /** Replaces the global `fetch`. */
  fetch?: typeof globalThis.fetch;
  /** Replaces the clock, for tests. */
  clock?: Clock;
  /** Makes the keys of changes that have none, for tests; default: random. */
  newKey?: () => string;
}

/** Options of a single request. */
export interface RequestOptions {
  /** Cancels the request, with all its retries. */
  signal?: AbortSignal;
}

/** Options of a request that changes something. */
export interface ChangeOptions extends RequestOptions {
  /**
   * The idempotency key: the server carries out each key once, and answers a repeated request as it did the first time.
   * Derive it from your own ids, such as `order-789-refund`. Default: a random key, which covers the library's retries.
   */
  key?: string;
}

/** Options of a change to a run. */
export interface RunChangeOptions extends ChangeOptions {
  /** Makes the change only if the run still has this version; otherwise `CONCURRENCY_ERROR`. */
  if_match?: number;
}

export interface TransportRequest {
  method: "GET" | "POST" | "PUT" | "DELETE";
  path: string;
  query?: object;
  /** The JSON body. Members that are undefined are left out. */
  body?: object;
  /** The idempotency key; undefined: none. */
  key?: string;
  ifMatch?: number;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
  /** How long the server may wait on purpose (`wait_ms`), in milliseconds. */
  waitMs?: number;
  retry?: RetryOptions;
  /** The answer is a text; otherwise it is JSON. */
  text?: boolean;
}

/** An answer that is not a problem. */
export interface Answer<T> {
  body: T;
  status: number;
  headers: Headers;
}

interface Environment {
  process?: { env?: Record<string, string | undefined> };
  location?: { origin?: string };
}

const DEFAULT_URL = "http://127.0.0.1:7295";
const DEADLINE_MS = 60_000;

function environment(name: string): string | undefined {
  const value = (globalThis as Environment).process?.env?.[name];
  return value === "" ? undefined : value;
}

function defaultUrl(): string {
  const origin = (globalThis as Environment).location?.origin;
  return environment("PAWL_URL") ?? (origin?.startsWith("http") === true ? origin : DEFAULT_URL);
}

function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** How a key travels in a header: visible ASCII bare, other printable ASCII quoted; undefined if a header cannot. */
export function keyHeader(key: string): string | undefined {
  if (/^[!#-~][!-~]*$/.test(key)) return key;
  if (/^[ -~]+$/.test(key)) return `"${key.replace(/["\\]/g, "\\$&")}"`;
  return undefined;
}

/** Refuses a key that the server would refuse, before anything is sent. */
export function checkKey(key: string): void {
  if (key === "" || Array.from(key).length > 255 || /[\u0000-\u001f\u007f-\u009f]/.test(key)) {
    throw new RangeError("An idempotency key has 1 to 255 characters, none of them a control character");
  }
}

export class Transport {
  readonly url: string;
  readonly clock: Clock;
  readonly newKey: () => string;
  readonly #headers: Record<string, string>;
  readonly #retry: RetryOptions;
  readonly #budget: RetryBudget;
  readonly #timeoutMs: number;
  readonly #fetch: typeof globalThis.fetch;

  constructor(readonly options: TransportOptions = {}) {
    this.url = (options.url ?? defaultUrl()).replace(/\/+$/, "");
    this.clock = options.clock ?? systemClock;
    this.newKey = options.newKey ?? randomKey;
    this.#headers = credentials(options);
    this.#retry = options.retry ?? {};
    this.#budget = new RetryBudget();
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    this.#fetch = options.fetch ?? ((...args) => globalThis.fetch(...args));
  }

  /** One request with its retries: the answer, or the error of the last attempt. */
  async send<T>(request: TransportRequest): Promise<Answer<T>> {
    const { response, text } = await this.#withRetries(request, (signal) => this.#attempt(request, signal));
    const body = request.text === true ? text : bodyOf(text);
    return { body: body as T, status: response.status, headers: response.headers };
  }

  /** Opens a stream; what arrives is the caller's to read. Does not retry. */
  async open(request: TransportRequest): Promise<Response> {
    const response = await this.#fetchOnce(request, request.signal);
    if (response.ok) return response;
    throw problemOf(response, await response.text());
  }

  /** How long a stream may be without a connection before its reader gets the error. */
  get patienceMs(): number {
    return this.#retry.deadlineMs ?? DEADLINE_MS;
  }

  /** The delays of a request or a stream, as the client's options say. */
  newBackoff(retry: RetryOptions = this.#retry): Backoff {
    return new Backoff(retry, () => this.clock.random());
  }

  async #withRetries<T>(request: TransportRequest, attempt: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const retry = { ...this.#retry, ...request.retry };
    const budget = retry.budget ?? this.#budget;
    const backoff = this.newBackoff(retry);
    const giveUp = this.clock.now() + (retry.deadlineMs ?? DEADLINE_MS);
    for (;;) {
      try {
        const result = await attempt(this.#attemptSignal(request));
        if (budget !== false) budget.success();
        return result;
      } catch (error) {
        request.signal?.throwIfAborted();
        backoff.fail();
        const again = isRetryable(error) && backoff.failures < (retry.maxAttempts ?? Infinity);
        if (!again || (budget !== false && !budget.take())) throw error;
        const pause = backoff.pauseMs(1000 * (retryAfterS(error) ?? 0));
        if (this.clock.now() + pause > giveUp) throw error;
        await this.clock.sleep(pause, request.signal);
      }
    }
  }

  #attemptSignal(request: TransportRequest): AbortSignal {
    const limit = AbortSignal.timeout(Math.ceil(this.#timeoutMs + (request.waitMs ?? 0)));
    return request.signal === undefined ? limit : AbortSignal.any([limit, request.signal]);
  }

  async #attempt(request: TransportRequest, signal: AbortSignal): Promise<{ response: Response; text: string }> {
    const response = await this.#fetchOnce(request, signal);
    const text = await response.text().catch((cause: unknown) => {
      throw this.#noAnswer(cause);
    });
    if (!response.ok) throw problemOf(response, text);
    return { response, text };
  }

  async #fetchOnce(request: TransportRequest, signal: AbortSignal | undefined): Promise<Response> {
    const headers = { ...this.#headers, ...request.headers };
    if (request.key !== undefined) headers["Idempotency-Key"] = requiredKeyHeader(request.key);
    if (request.ifMatch !== undefined) headers["If-Match"] = `"${request.ifMatch}"`;
    const init: RequestInit = { method: request.method, headers, redirect: "error" };
    if (request.body !== undefined) {
      headers["Content-Type"] = "application/json";
      init.body = JSON.stringify(request.body);
    }
    if (signal !== undefined) init.signal = signal;
    try {
      return await this.#fetch(this.url + request.path + queryString(request.query), init);
    } catch (cause) {
      throw this.#noAnswer(cause);
    }
  }

  #noAnswer(cause: unknown): NoAnswerError {
    const help = "Start one with `pawl dev`, or set url or PAWL_URL.";
    const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
    const refused = (inner as { code?: string } | undefined)?.code === "ECONNREFUSED";
    const why = inner instanceof Error ? inner.message : String(inner);
    const text = refused ? `No pawl server at ${this.url}. ${help}` : `No answer from ${this.url}: ${why}`;
    return new NoAnswerError(text, { cause });
  }
}

function credentials(options: TransportOptions): Record<string, string> {
  const headers: Record<string, string> = { Accept: "application/json", ...options.headers };
  const apiKey = options.apiKey ?? environment("PAWL_API_KEY");
  const tenant = options.tenant ?? environment("PAWL_TENANT");
  const actor = options.actor ?? environment("PAWL_ACTOR");
  if (apiKey !== undefined) headers.Authorization = `Bearer ${apiKey}`;
  if (tenant !== undefined) headers["X-Tenant-ID"] = tenant;
  if (actor !== undefined) headers["X-Actor"] = actor;
  return headers;
}

function requiredKeyHeader(key: string): string {
  checkKey(key);
  const header = keyHeader(key);
  if (header === undefined) throw new RangeError("The key of this request must be ASCII, because a header carries it");
  return header;
}

function queryString(query: object | undefined): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {}) as Array<[string, unknown]>) {
    if (value !== undefined && value !== null) parameters.set(name, textOf(value));
  }
  const text = parameters.toString();
  return text === "" ? "" : `?${text}`;
}

function textOf(value: unknown): string {
  return value instanceof Date ? value.toISOString() : String(value);
}

function bodyOf(text: string): unknown {
  try {
    return text === "" ? null : JSON.parse(text);
  } catch (cause) {
    throw new NoAnswerError(`The answer is not JSON, so not from pawl: ${text.slice(0, 80)}`, { cause });
  }
}

/** The error for an answer that is not a success, whoever sent it: pawl, or something in between. */
function problemOf(response: Response, text: string): ApiError {
  const after = Number(response.headers.get("Retry-After") ?? NaN);
  return apiError(pawlProblem(response, text) ?? foreignProblem(response), Number.isNaN(after) ? undefined : after);
}

function pawlProblem(response: Response, text: string): Problem | undefined {
  if (response.headers.get("Content-Type")?.startsWith("application/problem+json") !== true) return undefined;
  try {
    return JSON.parse(text) as Problem;
  } catch {
    return undefined;
  }
}

function foreignProblem({ status, statusText, headers }: Response): Problem {
  return {
    type: "about:blank",
    title: statusText,
    status,
    detail: `HTTP status ${status} without a problem from pawl`,
    code: `HTTP_${status}` as ProblemCode, // not one of pawl's
    retryable: status === 429 || status >= 500,
    trace_id: headers.get("X-Trace-Id") ?? "",
  };
}

export function isRetryable(error: unknown): boolean {
  return error instanceof NoAnswerError || (error instanceof ApiError && error.retryable);
}

export function retryAfterS(error: unknown): number | undefined {
  return error instanceof ApiError ? error.retryAfterS : undefined;
}
