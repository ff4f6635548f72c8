// What a change of a tenant's settings changed, in words.
import type { SettingsVersion } from "../api/types";

type Settings = SettingsVersion["settings"];

export const SETTING_WORDS: Record<keyof Settings, string> = {
  name: "name",
  max_concurrent_runs: "active runs",
  max_queued_runs: "queued runs",
  at_limit: "at the limit",
  idempotency_retention_s: "keys are kept (s)",
  run_retention_s: "runs are kept (s)",
  gate: "gate",
  rate_limit: "rate",
  weight: "weight",
};

function worded(value: unknown): string {
  if (value === null || value === undefined) return "none";
  return typeof value === "string" ? value : JSON.stringify(value);
}

export interface SettingChange {
  name: string;
  from: string;
  to: string;
}

/** Against the version before; nothing when there is none. */
export function changesOf(version: Settings, before: Settings | undefined): SettingChange[] {
  if (before === undefined) return [];
  return (Object.keys(SETTING_WORDS) as Array<keyof Settings>)
    .filter((name) => worded(version[name]) !== worded(before[name]))
    .map((name) => ({ name: SETTING_WORDS[name], from: worded(before[name]), to: worded(version[name]) }));
}
