/** When to send a request again: delays, a budget, a deadline. docs/idempotency.md explains why. */

/** How delays are spread. */
export type Jitter = "none" | "full" | "equal" | "decorrelated";

/** How to retry. All members are optional. */
export interface RetryOptions {
  /**
   * How delays are spread. `full` (the default): random from 0 to a bound that doubles with each attempt. `equal`: random
   * from half of the bound to the bound. `decorrelated`: random from `baseMs` to three times the previous delay. `none`:
   * the bound itself, the truncated exponential.
   */
  jitter?: Jitter;
  /** The bound of the first delay; default 200. */
  baseMs?: number;
  /** The largest bound; default 10000. */
  maxMs?: number;
  /** How much the bound grows with each attempt; default 2. */
  multiplier?: number;
  /** How many attempts are made at most, the first included; default: no limit but the deadline. */
  maxAttempts?: number;
  /** No retry begins later than this after the first attempt began; default 60000. */
  deadlineMs?: number;
  /** How many retries may be made beside successes; `false` for no budget. Default: one {@link RetryBudget} per client. */
  budget?: RetryBudget | false;
}

/**
 * Limits retries to a share of the requests, so that clients do not keep an overloaded server down: each success adds
 * 0.1 token to a bucket of 10, each retry takes 1. Clients may share one.
 *
 * @example
 * ```ts
 * const budget = new RetryBudget();
 * const a = new Client({ retry: { budget } });
 * const b = new Client({ retry: { budget, jitter: "decorrelated" } });
 * console.log(budget.tokens, a !== b); // 10 true
 * ```
 */
export class RetryBudget {
  #tokens: number;

  constructor(
    tokens = 10,
    readonly max = 10,
    readonly perSuccess = 0.1,
  ) {
    this.#tokens = tokens;
  }

  /** How many retries are left. */
  get tokens(): number {
    return this.#tokens;
  }

  /**
   * A request succeeded.
   *
   * @example
   * ```ts
   * const budget = new RetryBudget(0);
   * budget.success();
   * console.log(budget.tokens); // 0.1
   * ```
   */
  success(): void {
    this.#tokens = Math.min(this.max, this.#tokens + this.perSuccess);
  }

  /**
   * Takes a token for a retry; false if less than one is left.
   *
   * @example
   * ```ts
   * console.log(new RetryBudget(1).take(), new RetryBudget(0).take()); // true false
   * ```
   */
  take(): boolean {
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}

/** Where time and chance come from; tests give their own. */
export interface Clock {
  /** Monotonic milliseconds. */
  now(): number;
  /** From 0 to below 1. */
  random(): number;
  /** Waits. Rejects with the signal's reason if it is aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The clock of the machine. */
export const systemClock: Clock = {
  now: () => performance.now(),
  random: () => Math.random(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      const stop = (): void => {
        clearTimeout(timer);
        reject(signal?.reason as Error);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", stop);
        resolve();
      }, ms);
      if (signal?.aborted === true) stop();
      else signal?.addEventListener("abort", stop, { once: true });
    }),
};

/** The delays of one request, attempt by attempt. */
export class Backoff {
  #failures = 0;
  #before: number;
  readonly #jitter: Jitter;
  readonly #base: number;
  readonly #max: number;
  readonly #multiplier: number;

  constructor(
    options: RetryOptions,
    readonly random: () => number,
  ) {
    this.#jitter = options.jitter ?? "full";
    this.#base = options.baseMs ?? 200;
    this.#max = options.maxMs ?? 10_000;
    this.#multiplier = options.multiplier ?? 2;
    this.#before = this.#base;
  }

  /** How many attempts have failed. */
  get failures(): number {
    return this.#failures;
  }

  /** An attempt has failed: counts it. */
  fail(): void {
    this.#failures += 1;
  }

  /** How much of the bound is waited for. */
  #share(): number {
    if (this.#jitter === "none") return 1;
    return this.#jitter === "equal" ? (1 + this.random()) / 2 : this.random();
  }

  /** The pause before the next attempt, after what the server asked for. */
  pauseMs(retryAfterMs = 0): number {
    if (this.#jitter === "decorrelated") {
      const spread = 3 * this.#before - this.#base;
      this.#before = Math.min(this.#max, this.#base + this.random() * spread);
      return retryAfterMs + this.#before;
    }
    const bound = Math.min(this.#max, this.#base * this.#multiplier ** (this.#failures - 1));
    return retryAfterMs + bound * this.#share();
  }
}
