/** A clock that a test moves forward, and answers that take time on it. */

import type { Clock } from "../../src/index.js";

interface Waiter {
  at: number;
  wake: () => void;
}

/** Lets everything that can happen now happen: microtasks, and the macrotasks behind them. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 5; i += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Time that passes when the test says so. */
export class VirtualClock implements Clock {
  #time = 0;
  #waiters: Waiter[] = [];

  now(): number {
    return this.#time;
  }

  random(): number {
    return 0.5;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiter = { at: this.#time + ms, wake: resolve };
      const leave = (): void => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter);
        reject(signal?.reason as Error);
      };
      if (signal?.aborted === true) {
        leave();
        return;
      }
      signal?.addEventListener("abort", leave, { once: true });
      this.#waiters.push(waiter);
    });
  }

  /** Moves to a time, and wakes what is due on the way, in order. */
  async advanceTo(time: number): Promise<void> {
    await settle();
    for (let next = this.#nextDue(time); next !== undefined; next = this.#nextDue(time)) {
      this.#time = next.at;
      this.#waiters = this.#waiters.filter((waiter) => waiter !== next);
      next.wake();
      await settle();
    }
    this.#time = time;
  }

  #nextDue(time: number): Waiter | undefined {
    return this.#waiters.filter((waiter) => waiter.at <= time).sort((a, b) => a.at - b.at)[0];
  }
}
