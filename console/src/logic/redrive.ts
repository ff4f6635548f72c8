// Many dead letters are redriven one by one, a few at a time, each under a key of its own: a letter that has been redriven
// already answers the same again, so the whole can be repeated.
import type { Job } from "../api/types";
import { errorText } from "./error";

export interface LetterFilter {
  workflow: string;
  text: string; // of the error, the step or the handler
}

export function fits(letter: Job, filter: LetterFilter): boolean {
  const name = letter.workflow_id ?? letter.entity?.type ?? "";
  if (filter.workflow !== "" && name !== filter.workflow) return false;
  const all = [errorText(letter.error), letter.step, letter.handler, letter.job_id, letter.run_id].join(" ").toLowerCase();
  return all.includes(filter.text.toLowerCase());
}

export interface Progress {
  done: number;
  failed: Array<{ job_id: string; reason: string }>;
}

const AT_ONCE = 4;

export async function redriveAll(
  letters: readonly Job[],
  redrive: (letter: Job) => Promise<unknown>,
  onProgress: (progress: Progress) => void,
): Promise<Progress> {
  const waiting = [...letters];
  let progress: Progress = { done: 0, failed: [] };
  const tell = (next: Progress): void => onProgress((progress = next));
  const work = async (): Promise<void> => {
    for (let letter = waiting.shift(); letter !== undefined; letter = waiting.shift()) {
      const { job_id } = letter;
      await redrive(letter).then(
        () => tell({ ...progress, done: progress.done + 1 }),
        (e: unknown) => tell({ ...progress, failed: [...progress.failed, { job_id, reason: e instanceof Error ? e.message : String(e) }] }),
      );
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return progress;
}
