import { describe, expect, it } from "vitest";
import { dropView, readViews, saveView } from "../src/logic/views";

function memory(): Storage {
  const kept = new Map<string, string>();
  return { getItem: (key: string) => kept.get(key) ?? null, setItem: (key: string, value: string) => void kept.set(key, value) } as Storage;
}

describe("saved views", () => {
  it("are kept by tenant, and one of the same name is replaced", () => {
    const kept = memory();
    saveView(kept, "a", { name: "failed", query: "?status=failed" });
    saveView(kept, "a", { name: "failed", query: "?status=failed&workflow=refund" });
    expect(readViews(kept, "a")).toEqual([{ name: "failed", query: "?status=failed&workflow=refund" }]);
    expect(readViews(kept, "b")).toEqual([]);
    expect(dropView(kept, "a", "failed")).toEqual([]);
  });
  it("are none where something else was stored", () => {
    const kept = memory();
    for (const junk of ["{", "7", '[1,{"name":2}]']) {
      kept.setItem("pawl.views.a", junk);
      expect(readViews(kept, "a")).toEqual([]);
    }
  });
});
