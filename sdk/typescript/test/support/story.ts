/** The order of the story: payment, a pause, a person, a parcel; refunded if the person says no. */

import { StepError, type Worker, type Workflow } from "../../src/index.js";

export interface Order {
  id: number;
}

export interface Receipt {
  charge: string;
  outcome: "shipped" | "refunded";
}

/** Registers the order function and the rewards entity. `effect` is called with the key of each side effect. */
export function defineStory(worker: Worker, effect: (key: string) => void): Workflow<Order, Receipt> {
  worker.entity<{ points: number }>("story-rewards", {
    initial: () => ({ points: 0 }),
    signals: {
      add(payload: { points: number }, entity) {
        entity.state.points += payload.points;
      },
    },
  });
  return worker.durable("story-order", async (order: Order, ctx) => {
    const charge = await ctx.step("charge", ({ key }) => {
      effect(key);
      return `charge-${order.id}`;
    });
    await ctx.sleep("pause", "30ms");
    try {
      await ctx.approval("ok", `Ship order ${order.id}?`);
    } catch (error) {
      if (!(error instanceof StepError)) throw error;
      await ctx.step("refund", ({ key }) => {
        effect(key);
      });
      return { charge, outcome: "refunded" };
    }
    await ctx.step("ship", ({ key }) => {
      effect(key);
    });
    return { charge, outcome: "shipped" };
  });
}
