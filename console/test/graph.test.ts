import { describe, expect, test } from "vitest";
import { edgesOf, pathOf, picture } from "../src/logic/graph";

describe("edges", () => {
  test("without any needs, steps follow each other as written", () => {
    expect(edgesOf([{ name: "a" }, { name: "b" }, { name: "c" }])).toEqual([
      { from: "a", to: "b", kind: "needs" },
      { from: "b", to: "c", kind: "needs" },
    ]);
  });
  test("one step with needs makes every other one stand for itself", () => {
    expect(edgesOf([{ name: "a" }, { name: "b" }, { name: "c", needs: ["a"] }])).toEqual([{ from: "a", to: "c", kind: "needs" }]);
  });
  test("an empty list of needs counts as one", () => {
    expect(edgesOf([{ name: "a", needs: [] }, { name: "b" }])).toEqual([]);
  });
  test("on_error leads to a step, but fail and continue lead nowhere", () => {
    const steps = [
      { name: "a", needs: [], on_error: "fix" },
      { name: "b", needs: ["a"], on_error: "continue" },
      { name: "fix", needs: ["a"] },
    ];
    expect(edgesOf(steps).filter((edge) => edge.kind === "on_error")).toEqual([{ from: "a", to: "fix", kind: "on_error" }]);
  });
});

describe("picture", () => {
  const diamond = [
    { name: "a", needs: [] },
    { name: "b", needs: ["a"] },
    { name: "c", needs: ["a"] },
    { name: "d", needs: ["b", "c"] },
  ];
  test.each(["LR", "TB"] as const)("%s: what is needed comes first, and nothing overlaps", (direction) => {
    const drawn = picture(diamond, direction);
    const along = direction === "LR" ? "x" : "y";
    const at = new Map(drawn.nodes.map((node) => [node.name, node]));
    for (const { from, to } of drawn.edges) expect(at.get(from)?.[along]).toBeLessThan(at.get(to)?.[along] ?? 0);
    for (const one of drawn.nodes)
      for (const other of drawn.nodes) {
        if (one === other) continue;
        const apart = one.x + one.width <= other.x || other.x + other.width <= one.x || one.y + one.height <= other.y || other.y + other.height <= one.y;
        expect(apart, `${one.name} and ${other.name}`).toBe(true);
      }
    for (const node of drawn.nodes) expect(node.x >= 0 && node.x + node.width <= drawn.width && node.y >= 0 && node.y + node.height <= drawn.height).toBe(true);
  });
  test("a step that is both needed and an error handler has both lines", () => {
    const steps = [
      { name: "a", needs: [], on_error: "b" },
      { name: "b", needs: ["a"] },
    ];
    expect(
      picture(steps, "LR")
        .edges.map((edge) => edge.kind)
        .sort(),
    ).toEqual(["needs", "on_error"]);
  });
  test("500 steps in a row are laid out", () => {
    const steps = Array.from({ length: 500 }, (_, i) => ({ name: `s${i}` }));
    expect(picture(steps, "LR").nodes).toHaveLength(500);
  });
});

test("a path begins and ends at its ends", () => {
  const path = pathOf([
    { x: 0, y: 0 },
    { x: 10, y: 5 },
    { x: 20, y: 5 },
  ]);
  expect(path.startsWith("M0.0,0.0")).toBe(true);
  expect(path.endsWith("20.0,5.0")).toBe(true);
  expect(pathOf([])).toBe("");
});
