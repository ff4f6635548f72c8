// Shows the tests that fail, and in the last line how many passed and failed.
import { inspect } from "node:util";

export default async function* report(events) {
  const counts = { passed: 0, failed: 0 };
  for await (const { type, data } of events) {
    if (type === "test:stderr" || type === "test:stdout") yield data.message;
    if (type !== "test:pass" && type !== "test:fail") continue;
    if (data.details.type === "suite") continue;
    counts[type === "test:pass" ? "passed" : "failed"] += 1;
    if (type === "test:fail") yield `FAIL ${data.name}\n${inspect(data.details.error, { depth: 5 })}\n`;
  }
  yield `${counts.passed} passed, ${counts.failed} failed\n`;
}
