// The error of a run or an attempt in one sentence; the whole of it is shown as JSON beside it.

interface Told {
  code?: unknown;
  message?: unknown;
  step?: unknown;
  cause?: unknown;
}

const isTold = (value: unknown): value is Told => typeof value === "object" && value !== null && !Array.isArray(value);
const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** "Step mail: STEP_FAILED: NO_SUCH_MAILBOX: 550"; empty when the error says nothing that can be read. */
export function errorText(error: unknown): string {
  if (typeof error === "string") return error;
  if (!isTold(error)) return "";
  const step = text(error.step);
  return [step === "" ? "" : `Step ${step}`, text(error.code), text(error.message), errorText(error.cause)].filter(Boolean).join(": ");
}
