// What surrounds every page: navigation, the tenant, the state of the connection and the theme.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { api, chooseTenant, must, tenant, type Failure } from "../api/client";
import { me, signOut } from "../api/session";
import { link } from "../live/tenant";
import { href, parts } from "../router";
import { say, Toast } from "./bits";
import { Dialog } from "./dialog";
import { useLoad } from "./hooks";
import { SHORTCUTS, startKeys } from "./keys";
import { chooseTheme, theme, THEMES, type Theme } from "./theme";

const PAGES: ReadonlyArray<readonly [name: string, title: string]> = [
  ["", "Overview"],
  ["runs", "Runs"],
  ["approvals", "Approvals"],
  ["workflows", "Workflows"],
  ["queues", "Queues"],
  ["keys", "Idempotency"],
];

function Navigation() {
  const here = parts.value[0] ?? "";
  return (
    <nav aria-label="Pages">
      {PAGES.map(([name, title]) => (
        <a key={name} href={name === "" ? href() : href(name)} aria-current={here === name ? "page" : undefined}>
          {title}
        </a>
      ))}
    </nav>
  );
}

/** Those that exist, as far as the caller may know; any other name can be typed. */
async function tenantNames(): Promise<string[]> {
  const page = await must(api.GET("/api/v1/tenants", { params: { query: { limit: 200 } } }));
  return page.items.map((item) => item.id);
}

function TenantSwitch() {
  const [text, setText] = useState(tenant.value);
  const { data: names } = useLoad(tenantNames, []);
  const choose = (event: Event): void => {
    event.preventDefault();
    const name = text.trim();
    if (/^[\w.:-]{1,64}$/.test(name)) chooseTenant(name);
  };
  return (
    <form class="tenant" onSubmit={choose}>
      <label>
        <span>Tenant</span>
        <input
          value={text}
          onInput={(e) => setText(e.currentTarget.value)}
          onBlur={choose}
          maxLength={64}
          spellcheck={false}
          autocomplete="off"
          list="tenants"
        />
      </label>
      <datalist id="tenants">
        {(names ?? []).map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </form>
  );
}

/** Only who may see all tenants has a choice. */
function TenantName() {
  if (me.value?.all_tenants === true) return <TenantSwitch />;
  return (
    <span class="tenant">
      Tenant <strong>{tenant.value}</strong>
    </span>
  );
}

function Person() {
  const who = me.value;
  if (who?.session_expires_at == null) return null;
  return (
    <span class="person">
      <span title={`Role ${who.role}`}>{who.actor}</span>
      <button type="button" class="small" onClick={() => void signOut().catch((e: unknown) => say((e as Failure).message))}>
        Sign out
      </button>
    </span>
  );
}

const LINK_WORDS = { connecting: "Connecting…", live: "Live", waiting: "Reconnecting…", ended: "Not live" } as const;

function Link() {
  return (
    <span class={`link ${link.value}`} role="status">
      <span aria-hidden="true">●</span> {LINK_WORDS[link.value]}
    </span>
  );
}

const THEME_WORDS: Record<Theme, string> = { system: "System", light: "Light", dark: "Dark", contrast: "High contrast" };

function ThemeChoice() {
  return (
    <label class="theme">
      <span>Theme</span>
      <select value={theme.value} onChange={(e) => chooseTheme(e.currentTarget.value as Theme)}>
        {THEMES.map((name) => (
          <option key={name} value={name}>
            {THEME_WORDS[name]}
          </option>
        ))}
      </select>
    </label>
  );
}

function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl class="shortcuts">
        {SHORTCUTS.map(([keys, does]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button>Close</button>
      </form>
    </Dialog>
  );
}

export function Frame({ children }: { children: ComponentChildren }) {
  const [helps, setHelps] = useState(false);
  const main = useRef<HTMLElement>(null);
  useEffect(() => startKeys(() => setHelps(true)), []);
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the content
      </button>
      <header class="bar">
        <a class="brand" href={href()}>
          <img src="./icon.svg" alt="" width="22" height="22" /> pawl
        </a>
        <Navigation />
        <div class="tools">
          <Link />
          <TenantName />
          <ThemeChoice />
          <Person />
          <button type="button" class="small" aria-label="Keyboard shortcuts" onClick={() => setHelps(true)}>
            ?
          </button>
        </div>
      </header>
      <main ref={main} tabIndex={-1}>
        {children}
      </main>
      <Toast />
      {helps && <Help onClose={() => setHelps(false)} />}
    </>
  );
}
