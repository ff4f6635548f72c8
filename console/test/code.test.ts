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
    expect(codeOf(start, "JavaScript")).toContain(`headers: { "Content-Type": "application/json", "X-Tenant-ID": "acme" }`);
    expect(codeOf(start, "JavaScript")).toContain(`body: JSON.stringify({"a":[true,null,"é'\\""],"b":1.5})`);
    expect(codeOf(start, "curl")).toMatch(/^curl -H 'X-Tenant-ID: acme' --json /);
  });

  it("takes the API key from the environment, and never holds it", () => {
    const read = { method: "GET", url: "http://h/x", withKey: true } as const;
    expect(codeOf(read, "curl")).toBe('curl -H "X-API-Key: $PAWL_API_KEY" http://h/x');
    expect(codeOf(read, "Python")).toContain(
      'import os\n\nimport requests\n\nresponse = requests.get("http://h/x", headers={"X-API-Key": os.environ["PAWL_API_KEY"]})',
    );
    expect(codeOf(read, "JavaScript")).toContain('headers: { "X-API-Key": process.env.PAWL_API_KEY }');
  });

  it("goes through many addresses one after the other", () => {
    const many = { method: "POST", url: "http://h/1", others: ["http://h/2"], body: {} } as const;
    expect(codeOf(many, "curl")).toBe("curl --json '{}' http://h/1\ncurl --json '{}' http://h/2");
    expect(codeOf(many, "Python")).toContain('for url in ["http://h/1", "http://h/2"]:\n    requests.post(url, json={}).raise_for_status()');
    expect(codeOf(many, "JavaScript")).toContain(
      'for (const url of ["http://h/1","http://h/2"]) {\n  const response = await fetch(url, {\n    method: "POST",',
    );
  });

  it("is short for a plain read", () => {
    expect(codeOf({ method: "GET", url: "http://h/x" }, "Python")).toContain(`requests.get("http://h/x")\n`);
    expect(codeOf({ method: "GET", url: "http://h/x" }, "JavaScript")).toMatch(/^const response = await fetch\("http:\/\/h\/x"\);/);
  });
});
