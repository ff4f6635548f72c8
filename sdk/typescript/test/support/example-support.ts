/** What the examples get beside the library. It is copied to where the package is installed. */

import assert from "node:assert/strict";
import { inspect } from "node:util";
import { Worker, type EntityAnswer, type EntityHandlers, type EntityInput, type TaskContext } from "pawl";

/** Compares what an example prints, as `console.log` shows it, with its comment. "…" stands for anything. */
export function check(expected: string, ...actual: unknown[]): void {
  const shown = actual.map((value) => (typeof value === "string" ? value : inspect(value))).join(" ");
  const parts = expected.split("…").map((part) => part.trim().replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  assert.match(shown, new RegExp(`^${parts.join("[^]*")}$`));
}

/** A worker that remembers what was registered, and whether it was run. */
export class ExampleWorker extends Worker {
  readonly tasks: string[] = [];
  readonly entities: string[] = [];
  ran = false;

  override task<Input = unknown>(handler: string, run: (input: Input, context: TaskContext) => unknown): this {
    this.tasks.push(handler);
    return super.task(handler, run);
  }

  override entity<State>(
    handler: string,
    handlers:
      EntityHandlers<State> | ((call: EntityInput, context: TaskContext) => EntityAnswer | Promise<EntityAnswer>),
  ): this {
    super.entity(handler, handlers);
    this.entities.push(this.tasks.pop() ?? "");
    return this;
  }

  override run(options: { handleSignals?: boolean } = {}): Promise<void> {
    this.ran = true;
    return super.run(options);
  }
}
