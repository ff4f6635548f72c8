/** What the examples find on the server: some workflows, an entity type, and a worker that serves them. */

import { step, TaskError, Worker, workflow, type Client } from "../../src/index.js";

/** Stores the workflows and the entity type that examples use. */
export async function prepareTenant(client: Client): Promise<void> {
  const greet = workflow<{ name: string }>("greet", ({ input }) => [
    step.transform("hello", { text: `Hello, ${input.name}!` }),
  ]);
  const parcel = workflow("parcel", ({ steps }) => [
    step.waitSignal("arrival", ["delivered", "lost"]),
    step.transform("what", steps.arrival?.output?.name),
  ]);
  const refund = workflow<{ amount: number }>("refund", ({ input }) => [
    step.approval("ok", `Refund ${input.amount}?`),
  ]);
  const order = workflow("order", [step.task("charge", "docs.charge", { queue: "examples" })]);
  const byHand = workflow("by-hand", [step.task("send", "mail.send", { queue: "by-hand" })]);
  for (const one of [greet, parcel, refund, order, byHand]) await client.apply(one);
  await client.entities.defineType("rewards", { queue: "examples", handler: "rewards" });
}

/** The worker that serves them. */
export function exampleWorker(client: Client): Worker {
  const worker = new Worker(client, { queues: ["examples"], onError: () => undefined });
  worker.task("docs.charge", (input: { amount: number }) => {
    if (input.amount < 0) throw new TaskError("AMOUNT_INVALID", "negative", { retryable: false });
    return { charge: "ch_1" };
  });
  worker.entity<{ points: number }>("rewards", {
    initial: () => ({ points: 0 }),
    signals: {
      "add-points"(payload: { points: number }, entity) {
        entity.state.points += payload.points;
      },
      redeem(payload: { points: number }, entity) {
        if (payload.points > entity.state.points) entity.reject("TOO_FEW");
        entity.state.points -= payload.points;
      },
    },
  });
  return worker;
}
