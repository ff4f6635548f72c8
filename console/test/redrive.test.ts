import { describe, expect, it } from "vitest";
import type { Job } from "../src/api/types";
import { fits, redriveAll } from "../src/logic/redrive";

const letter = (job_id: string, more: Partial<Job> = {}): Job =>
  ({ job_id, workflow_id: "refund", step: "pay", handler: "h", error: { code: "DOWN", message: "503" }, ...more }) as Job;

describe("redriving many dead letters", () => {
  it("tries each of them once and goes on after one that is refused", async () => {
    const tried: string[] = [];
    const seen: number[] = [];
    const letters = Array.from({ length: 11 }, (_, i) => letter(String(i)));
    const result = await redriveAll(
      letters,
      ({ job_id }) => {
        tried.push(job_id);
        return job_id === "3" ? Promise.reject(new Error("It is gone")) : Promise.resolve();
      },
      (progress) => seen.push(progress.done + progress.failed.length),
    );
    expect(tried).toHaveLength(11);
    expect(result).toEqual({ done: 10, failed: [{ job_id: "3", reason: "It is gone" }] });
    expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  });

  it("filters by workflow or type of entity, and by text of the error", () => {
    expect(fits(letter("1"), { workflow: "refund", text: "down: 503" })).toBe(true);
    expect(fits(letter("1"), { workflow: "other", text: "" })).toBe(false);
    expect(fits(letter("1", { workflow_id: null, entity: { type: "cart", id: "7" } }), { workflow: "cart", text: "" })).toBe(true);
    expect(fits(letter("1"), { workflow: "", text: "404" })).toBe(false);
  });
});
