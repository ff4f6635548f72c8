// Keys that work on every page. Letters typed into a field, or with a modifier, are left alone.
import { go, href } from "../router";

export const SHORTCUTS: ReadonlyArray<readonly [keys: string, does: string]> = [
  ["g o", "Go to the overview"],
  ["g r", "Go to the runs"],
  ["g a", "Go to the approvals"],
  ["g w", "Go to the workflows"],
  ["g q", "Go to the queues and workers"],
  ["g i", "Look up an idempotency key"],
  ["/", "Filter this list"],
  ["j / k", "Next / previous entry of a list"],
  ["?", "Show these shortcuts"],
];

const PLACES: Record<string, string[]> = { o: [], r: ["runs"], a: ["approvals"], w: ["workflows"], q: ["queues"], i: ["keys"] };
const PREFIX_MS = 1_500;

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/** The entry after or before the one that has the focus. */
function step(by: 1 | -1): void {
  const entries = [...document.querySelectorAll<HTMLElement>("[data-entry]")];
  const at = entries.indexOf(document.activeElement as HTMLElement);
  entries[Math.min(entries.length - 1, Math.max(0, at + by))]?.focus();
}

export function startKeys(showHelp: () => void): () => void {
  let prefixAt = 0;
  const pressed = (event: KeyboardEvent): void => {
    if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
    const afterG = Date.now() - prefixAt < PREFIX_MS;
    prefixAt = event.key === "g" ? Date.now() : 0;
    const place = afterG ? PLACES[event.key] : undefined;
    if (place !== undefined) go(href(...place));
    else if (event.key === "?") showHelp();
    else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "/") document.querySelector<HTMLElement>("[data-filter]")?.focus();
    else return;
    event.preventDefault();
  };
  document.addEventListener("keydown", pressed);
  return () => document.removeEventListener("keydown", pressed);
}
