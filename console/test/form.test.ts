import { describe, expect, test } from "vitest";
import { fieldsOf, readForm, readJson } from "../src/logic/form";

const SCHEMA = {
  type: "object",
  required: ["order", "amount"],
  properties: {
    order: { type: "string", title: "Order", description: "As on the invoice" },
    amount: { type: "integer", minimum: 1, maximum: 9 },
    rate: { type: "number" },
    gift: { type: "boolean" },
    currency: { enum: ["EUR", "USD"], default: "EUR" },
    lines: { type: "array", default: [1] },
  },
};

describe("fields", () => {
  const fields = fieldsOf(SCHEMA) ?? [];
  test("have the kind of their type", () => {
    expect(fields.map((f) => [f.name, f.kind])).toEqual([
      ["order", "text"],
      ["amount", "integer"],
      ["rate", "number"],
      ["gift", "boolean"],
      ["currency", "choice"],
      ["lines", "json"],
    ]);
  });
  test("tell what the schema tells", () => {
    expect(fields[0]).toMatchObject({ title: "Order", help: "As on the invoice", required: true });
    expect(fields[1]).toMatchObject({ title: "amount", min: 1, max: 9 });
    expect(fields[4]).toMatchObject({ choices: ["EUR", "USD"], initial: "EUR", required: false });
    expect(fields[5]?.initial).toBe("[1]");
  });
  test.each([[true], [undefined], [{}], [{ type: "array", properties: {} }], [{ type: "string" }]])("%j has none", (schema) =>
    expect(fieldsOf(schema)).toBeNull(),
  );
});

describe("reading the form", () => {
  const fields = fieldsOf(SCHEMA) ?? [];
  test("leaves out what is empty and keeps defaults", () => {
    expect(readForm(fields, { order: "A-1", amount: "5" })).toEqual({ ok: true, input: { order: "A-1", amount: 5, currency: "EUR", lines: [1] } });
  });
  test("a required text may be empty: the schema decides", () => {
    expect(readForm(fields, { order: "", amount: "5" })).toMatchObject({ ok: true, input: { order: "" } });
  });
  test("false is not the same as nothing", () => {
    expect(readForm(fields, { order: "x", amount: "1", gift: "false" })).toMatchObject({ input: { gift: false } });
  });
  test("names every field that cannot be sent", () => {
    const read = readForm(fields, { order: "x", amount: "", rate: "much", lines: "[1" });
    expect(read.ok ? [] : Object.keys(read.faults)).toEqual(["amount", "rate", "lines"]);
  });
  test("1.5 is no whole number", () =>
    expect(readForm(fields, { order: "x", amount: "1.5" })).toEqual({ ok: false, faults: { amount: "Not a whole number" } }));
});

test("JSON is any value", () => {
  expect(readJson("input", "null")).toEqual({ ok: true, input: null });
  expect(readJson("input", "{")).toMatchObject({ ok: false });
});
