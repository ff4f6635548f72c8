import { describe, expect, it } from "vitest";
import { diffOf, shortened } from "../src/logic/diff";

const text = (lines: ReturnType<typeof diffOf>): string =>
  (lines ?? []).map((line) => `${{ same: " ", added: "+", removed: "-" }[line.kind]}${line.text}`).join("|");

describe("the difference of two texts", () => {
  it("keeps common lines and marks the others", () => {
    expect(text(diffOf("a\nb\nc", "a\nx\nc\nd"))).toBe(" a|-b|+x| c|+d");
  });
  it("is all the same for equal texts, and all new for an empty one", () => {
    expect(text(diffOf("a\nb", "a\nb"))).toBe(" a| b");
    expect(text(diffOf("", "a"))).toBe("-|+a");
  });
  it("refuses what would take too long", () => {
    expect(diffOf("x\n".repeat(3_000), "")).toBeNull();
  });
  it("is shortened to three lines around each change", () => {
    const before = Array.from({ length: 20 }, (_, i) => String(i)).join("\n");
    const lines = shortened(diffOf(before, before.replace("10", "ten")) ?? []);
    expect(lines.map((line) => line?.text ?? "…")).toEqual(["…", "7", "8", "9", "10", "ten", "11", "12", "13", "…"]);
  });
});
