// The timeline of one run, from its first event on, and live until the run is over.
import { apiUrl, tenantHeaders } from "../api/client";
import type { RunEvent } from "../api/types";
import { follow, type LinkState } from "./stream";

export interface RunFollower {
  onEvents(events: RunEvent[]): void;
  onState(state: LinkState): void;
  /** Is the run over? Then its stream ends for good. */
  isOver(): boolean;
}

export function followRun(runId: string, after: number, follower: RunFollower): () => void {
  return follow({
    url: apiUrl(`runs/${runId}/events`),
    headers: tenantHeaders(),
    after: after > 0 ? String(after) : null,
    onState: (state) => follower.onState(state),
    onMessages: (messages) => follower.onEvents(messages.map((m) => JSON.parse(m.data) as RunEvent)),
    again: () => !follower.isOver(),
  });
}
