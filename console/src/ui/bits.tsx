// Small parts that every page is made of.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import type { Failure } from "../api/client";
import { codeOf, LANGUAGES } from "../logic/code";
import type { Request } from "../logic/curl";
import { familyOf, MARKS, worded } from "../logic/status";
import { absolute, relative } from "../logic/time";
import { href } from "../router";
import { now } from "./hooks";
import { Icon } from "./icons";

export function Status({ of }: { of: string }) {
  const family = familyOf(of);
  return (
    <span class={`status ${family}`}>
      <span aria-hidden="true">{MARKS[family]}</span> {worded(of)}
    </span>
  );
}

/** Relative, with the absolute time for the pointer and for screen readers. */
export function Time({ at }: { at: string | null | undefined }) {
  if (at == null) return <span class="faint">–</span>;
  return (
    <time dateTime={at} title={absolute(at)}>
      {relative(at, now.value)}
    </time>
  );
}

/** Both forms, where there is room. */
export function FullTime({ at }: { at: string | null | undefined }) {
  if (at == null) return <span class="faint">–</span>;
  return (
    <span>
      <Time at={at} /> <span class="faint nowrap">{absolute(at)}</span>
    </span>
  );
}

// --- messages that go away by themselves ---

const toast = signal<string | null>(null);
let toastTimer: ReturnType<typeof setTimeout> | undefined;

export function say(text: string): void {
  toast.value = text;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => (toast.value = null), 6_000);
}

export function Toast() {
  return (
    <div class="toast" role="status" aria-live="polite" hidden={toast.value === null}>
      {toast.value}
    </div>
  );
}

function copyText(text: string, what: string): void {
  // Browsers have no clipboard for pages over plain HTTP from another machine: then it can be copied by hand.
  const clipboard = navigator.clipboard as Clipboard | undefined;
  if (clipboard === undefined) say(text);
  else
    clipboard.writeText(text).then(
      () => say(`${what} copied`),
      () => say(text),
    );
}

export function Copy({ text, label, what }: { text: string; label: string; what: string }) {
  return (
    <button type="button" class="small" onClick={() => copyText(text, what)} title={text}>
      {label}
    </button>
  );
}

/** The same request in a terminal or a program. */
export function CopyAs({ request, label = "Copy as" }: { request: Request; label?: string }) {
  const menu = useRef<HTMLDetailsElement>(null);
  const close = (): void => {
    if (menu.current !== null) menu.current.open = false;
  };
  const left = (event: FocusEvent): void => {
    if (!(event.relatedTarget instanceof Node && menu.current?.contains(event.relatedTarget) === true)) close();
  };
  return (
    <details class="menu" ref={menu} onFocusOut={left} onKeyDown={(e) => e.key === "Escape" && close()}>
      <summary class="button small">
        <Icon name="copy" /> {label}
      </summary>
      <div class="menu-items">
        {LANGUAGES.map((language) => (
          <button
            key={language}
            type="button"
            onClick={() => {
              copyText(codeOf(request, language), language);
              close();
            }}
          >
            {language}
          </button>
        ))}
      </div>
    </details>
  );
}

export function Short({ id }: { id: string }) {
  return <code title={id}>{`${id.slice(0, 8)}…${id.slice(-6)}`}</code>;
}

export function RunLink({ id }: { id: string }) {
  return (
    <a href={href("runs", id)}>
      <Short id={id} />
    </a>
  );
}

export function Json({ value, label }: { value: unknown; label: string }) {
  if (value === null || value === undefined) return <p class="faint">None</p>;
  const text = JSON.stringify(value, null, 2);
  return (
    <div class="json">
      <pre tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
      <Copy text={text} label="Copy" what={label} />
    </div>
  );
}

/** Nothing here yet: says what would be, and how to make it so. */
export function Empty({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Command({ text }: { text: string }) {
  return (
    <div class="command">
      <pre tabIndex={0} role="region" aria-label="Command">
        {text}
      </pre>
      <Copy text={text} label="Copy" what="Command" />
    </div>
  );
}

export function ProblemBox({ failure, retry }: { failure: Failure; retry?: () => void }) {
  const { code, detail, title, status, trace_id } = failure.problem;
  return (
    <div class="problem" role="alert">
      <strong>{title}</strong>
      <p>{detail ?? ""}</p>
      <p class="faint">
        {status > 0 && <code>{code}</code>} {trace_id !== undefined && <span>trace {trace_id}</span>}
      </p>
      {retry !== undefined && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

export const Loading = () => (
  <p class="faint" role="status">
    Loading…
  </p>
);

export function Card({ title, aside, children }: { title: string; aside?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section class="card">
      <header>
        <h2>{title}</h2>
        <div class="actions">{aside}</div>
      </header>
      {children}
    </section>
  );
}

/** `lead`: one sentence for whoever sees the page for the first time. */
export function PageHead({ title, lead, children }: { title: ComponentChildren; lead?: ComponentChildren; children?: ComponentChildren }) {
  return (
    <div class="page-head">
      <div>
        <h1 tabIndex={-1}>{title}</h1>
        {lead !== undefined && <p class="lead">{lead}</p>}
      </div>
      <div class="actions">{children}</div>
    </div>
  );
}

/** What is known about a thing, in pairs; what is undefined is left out. */
export function Facts({ of }: { of: Record<string, ComponentChildren> }) {
  return (
    <dl class="facts">
      {Object.entries(of)
        .filter(([, value]) => value !== undefined)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** How full something is; without a limit only the count. */
export function Meter({ title, value, limit }: { title: string; value: number; limit: number | null }) {
  const share = limit === null ? 0 : limit === 0 ? 1 : Math.min(1, value / limit);
  const tone = limit === null ? "" : share >= 1 ? "bad" : share >= 0.8 ? "waiting" : "good";
  return (
    <div class="tile">
      <span class="tile-title">{title}</span>
      <span class={`tile-value ${tone === "good" ? "" : tone}`}>
        {value} <span class="of">{limit === null ? "no limit" : `of ${limit}`}</span>
      </span>
      {limit !== null && (
        <span class={`meter ${tone}`} role="meter" aria-label={title} aria-valuenow={value} aria-valuemin={0} aria-valuemax={limit}>
          <span style={{ width: `${100 * share}%` }} />
        </span>
      )}
    </div>
  );
}
