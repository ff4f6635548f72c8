// A decision in words. Repeated ones say so: whoever pressed twice learns that it counted once.
import type { Decision } from "../api/types";
import { absolute } from "./time";

export function outcomeOf(decision: Decision, offsetMinutes?: number): string {
  const by = decision.approved_by ?? decision.rejected_by ?? "";
  const at = decision.approved_at ?? decision.rejected_at;
  const when = at === undefined ? "" : ` at ${absolute(at, offsetMinutes)}`;
  const votes = `${decision.approvals ?? 0} of ${decision.needed ?? 1}`;
  switch (decision.status) {
    case "approved":
      return `Approved by ${by}${when}. The run goes on.`;
    case "rejected":
      return `Rejected by ${by}${when}.`;
    case "recorded":
      return `Your approval is recorded: ${votes}.`;
    case "already_approved":
      return `Already approved by ${by}${when}. Nothing happened twice.`;
    case "already_rejected":
      return `Already rejected by ${by}${when}. Nothing happened twice.`;
    case "already_recorded":
      return `You had already approved: ${votes}. Your vote counts once.`;
  }
}
