import { describe, expect, it } from "vitest";
import { codeOf, pythonOf } from "../src/logic/code";

const start = { method: "POST", url: "http://h/api/v1/x", headers: { "X-Tenant-ID": "acme" }, body: { a: [true, null, "é'\""], b: 1.5 } } as const;

describe("a request as code", () => {
  it("writes Python's constants and leaves texts as they are in JSON", () => {
    expect(pythonOf({ a: [true, false, null, 1, "x\n'"] })).toBe(`{"a": [True, False, None, 1, "x\\n'"]}`);
  });

  it("has method, address, headers and body in each language", () => {
    expect(codeOf(start, "Python")).toContain(
      `requests.post("http://h/api/v1/x", json={"a": [True, None, "é'\\""], "b": 1.5}, headers={"X-Tenant-ID": "acme"})`,
    );
    expect(codeOf(start, "JavaScript")).toContain(`headers: {"Content-Type":"application/json","X-Tenant-ID":"acme"}`);
    expect(codeOf(start, "JavaScript")).toContain(`body: JSON.stringify({"a":[true,null,"é'\\""],"b":1.5})`);
    expect(codeOf(start, "curl")).toMatch(/^curl -H 'X-Tenant-ID: acme' --json /);
  });

  it("is short for a plain read", () => {
    expect(codeOf({ method: "GET", url: "http://h/x" }, "Python")).toContain(`requests.get("http://h/x")\n`);
    expect(codeOf({ method: "GET", url: "http://h/x" }, "JavaScript")).toMatch(/^const response = await fetch\("http:\/\/h\/x"\);/);
  });
});
