// Webhooks, their deliveries, and a way to send one again.
import { useState } from "preact/hooks";
import { api, curlOf, must, requestOf } from "../api/client";
import type { Delivery, Webhook } from "../api/types";
import { go, href } from "../router";
import { AskButton } from "../ui/ask";
import { Card, Command, CopyAs, Empty, Facts, FullTime, Loading, PageHead, ProblemBox, Short, Time } from "../ui/bits";
import { usePages, usePolled, useTitle } from "../ui/hooks";
import { PagedTable } from "../ui/list";

const REFRESH_MS = 3_000;
const EXAMPLE = { url: "https://example.com/hook", events: ["run.failed", "approval.requested"] };

const withKey = (id: string, key: string) => ({ path: { webhook_id: id }, header: { "Idempotency-Key": key } });

function State({ of }: { of: Webhook }) {
  if (!of.enabled) return <span class="status idle">disabled</span>;
  return of.failing_since === null ? <span class="status good">active</span> : <span class="status bad">failing</span>;
}

const patterns = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean);

/** A secret is shown once: the server keeps it, but tells it nobody again. */
function Secret({ text, onClose }: { text: string; onClose: () => void }) {
  return (
    <Card
      title="The secret that signs its deliveries"
      aside={
        <button type="button" onClick={onClose}>
          I have it
        </button>
      }
    >
      <p>Copy it now: it is not shown again.</p>
      <Command text={text} />
    </Card>
  );
}

function NewWebhook({ onSecret }: { onSecret: (secret: string) => void }) {
  const [url, setUrl] = useState("https://");
  const [events, setEvents] = useState("run.failed, approval.requested");
  const body = { url, events: patterns(events) };
  return (
    <AskButton
      label="New webhook"
      title="New webhook"
      verb="Create"
      request={requestOf("POST", "webhooks", body)}
      run={async (key) => {
        const made = await must(api.POST("/api/v1/webhooks", { params: { header: { "Idempotency-Key": key } }, body }));
        onSecret(made.secret ?? "");
        return "The webhook is active";
      }}
    >
      <label>
        URL
        <input required type="url" value={url} maxLength={2048} spellcheck={false} onInput={(e) => setUrl(e.currentTarget.value)} />
      </label>
      <label>
        Events <span class="faint">such as run.failed or approval.*</span>
        <input required value={events} spellcheck={false} onInput={(e) => setEvents(e.currentTarget.value)} />
      </label>
    </AskButton>
  );
}

export function Webhooks() {
  useTitle("Webhooks");
  const [secret, setSecret] = useState<string | null>(null);
  const list = usePages((cursor) => must(api.GET("/api/v1/webhooks", { params: { query: { limit: 100, ...(cursor === undefined ? {} : { cursor }) } } })), []);
  const made = (text: string): void => {
    setSecret(text);
    list.reload();
  };
  return (
    <>
      <PageHead title="Webhooks" lead="Signed messages to your systems, sent again until they are accepted.">
        <CopyAs request={requestOf("GET", "webhooks")} />
        <NewWebhook onSecret={made} />
      </PageHead>
      {secret !== null && <Secret text={secret} onClose={() => setSecret(null)} />}
      <PagedTable
        label="Webhooks"
        list={list}
        keyOf={(hook) => hook.id}
        columns={[
          {
            title: "Sent to",
            cell: (hook) => (
              <a href={href("webhooks", hook.id)} data-entry class="url">
                {hook.url}
              </a>
            ),
          },
          { title: "State", cell: (hook) => <State of={hook} /> },
          {
            title: "Events",
            cell: (hook) =>
              hook.events.map((name) => (
                <span class="label" key={name}>
                  {name}
                </span>
              )),
          },
          { title: "Changed", cell: (hook) => <Time at={hook.updated_at} /> },
        ]}
        empty={
          <Empty title="No webhooks yet">
            <p>A webhook sends the events that you choose to a URL, each under one stable id, signed, and again until it is accepted.</p>
            <Command text={curlOf("POST", "webhooks", EXAMPLE)} />
          </Empty>
        }
      />
    </>
  );
}

const FAMILY: Record<Delivery["state"], string> = { pending: "waiting", sending: "active", delivered: "good", failed: "bad" };

function Deliveries({ id }: { id: string }) {
  const list = usePages(
    (cursor) =>
      must(
        api.GET("/api/v1/webhooks/{webhook_id}/deliveries", {
          params: { path: { webhook_id: id }, query: { limit: 50, ...(cursor === undefined ? {} : { cursor }) } },
        }),
      ),
    [id],
  );
  const resend = (delivery: Delivery, key: string): Promise<string> =>
    must(
      api.POST("/api/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver", {
        params: { path: { webhook_id: id, delivery_id: delivery.id }, header: { "Idempotency-Key": key } },
        body: {},
      }),
    ).then(() => "It is sent again, under the same id");
  return (
    <Card
      title="Deliveries"
      aside={
        <>
          <button type="button" class="small" onClick={list.reload}>
            Refresh
          </button>
          <CopyAs request={requestOf("GET", `webhooks/${id}/deliveries`)} />
        </>
      }
    >
      <PagedTable
        label="Deliveries"
        list={list}
        keyOf={(d) => d.id}
        columns={[
          { title: "Event", cell: (d) => <strong>{d.event_type}</strong> },
          { title: "State", cell: (d) => <span class={`status ${FAMILY[d.state]}`}>{d.state}</span> },
          { title: "Attempts", cell: (d) => d.attempts, numeric: true },
          { title: "Answer", cell: (d) => d.last_error ?? d.last_status ?? "–" },
          { title: "Made", cell: (d) => <Time at={d.created_at} /> },
          { title: "Next try", cell: (d) => <Time at={d.next_attempt_at} /> },
          {
            title: "Actions",
            cell: (d) => (
              <AskButton
                label="Resend"
                small
                title="Send this delivery again?"
                verb="Send again"
                request={requestOf("POST", `webhooks/${id}/deliveries/${d.id}/redeliver`, {})}
                run={(key) => resend(d, key)}
                onDone={list.reload}
              >
                <p>
                  Its id stays <Short id={d.event_id} />, so a receiver that has it already can tell.
                </p>
              </AskButton>
            ),
          },
        ]}
        empty={<p class="faint">Nothing has been sent yet. Send a test, or wait for an event that it asks for.</p>}
      />
    </Card>
  );
}

function Actions({ hook, onDone, onSecret }: { hook: Webhook; onDone: () => void; onSecret: (text: string) => void }) {
  const { id } = hook;
  return (
    <>
      <AskButton
        label="Send a test"
        title="Send a test event?"
        verb="Send"
        request={requestOf("POST", `webhooks/${id}/test`, {})}
        run={(key) => must(api.POST("/api/v1/webhooks/{webhook_id}/test", { params: withKey(id, key), body: {} })).then(() => "The test is on its way")}
        onDone={onDone}
      >
        <p>It is signed and sent as any other event.</p>
      </AskButton>
      <AskButton
        label={hook.enabled ? "Disable" : "Enable"}
        title={hook.enabled ? "Disable this webhook?" : "Enable this webhook?"}
        verb={hook.enabled ? "Disable" : "Enable"}
        request={requestOf("PUT", `webhooks/${id}`, { enabled: !hook.enabled })}
        run={(key) =>
          must(api.PUT("/api/v1/webhooks/{webhook_id}", { params: withKey(id, key), body: { enabled: !hook.enabled } })).then(() =>
            hook.enabled ? "The webhook is disabled" : "The webhook is active",
          )
        }
        onDone={onDone}
      >
        <p>{hook.enabled ? "Nothing is sent until it is enabled again." : "Events from now on are sent."}</p>
      </AskButton>
      <AskButton
        label="Rotate the secret"
        title="Rotate the secret?"
        verb="Rotate"
        request={requestOf("POST", `webhooks/${id}/rotate`, {})}
        run={async (key) => {
          const made = await must(api.POST("/api/v1/webhooks/{webhook_id}/rotate", { params: withKey(id, key), body: {} }));
          onSecret(made.secret ?? "");
          return "The secret is new; the old one still signs for a day";
        }}
        onDone={onDone}
      >
        <p>Deliveries are signed with both secrets for a day, so receivers have time to change.</p>
      </AskButton>
      <AskButton
        label="Delete"
        danger
        title="Delete this webhook?"
        verb="Delete"
        request={requestOf("DELETE", `webhooks/${id}`)}
        run={async (key) => {
          await must(api.DELETE("/api/v1/webhooks/{webhook_id}", { params: withKey(id, key) }));
          go(href("webhooks"));
          return "The webhook is deleted";
        }}
      >
        <p>Its deliveries go with it. This cannot be undone.</p>
      </AskButton>
    </>
  );
}

export function WebhookPage({ id }: { id: string }) {
  useTitle("Webhook");
  const [secret, setSecret] = useState<string | null>(null);
  const [sent, setSent] = useState(0); // a test makes the deliveries be read again
  const {
    data: hook,
    failure,
    reload,
  } = usePolled(() => must(api.GET("/api/v1/webhooks/{webhook_id}", { params: { path: { webhook_id: id } } })), REFRESH_MS, [id]);
  if (hook === null) return failure === null ? <Loading /> : <ProblemBox failure={failure} retry={reload} />;
  const done = (): void => {
    reload();
    setSent((n) => n + 1);
  };
  return (
    <>
      <PageHead title={<span class="url">{hook.url}</span>}>
        <State of={hook} />
        <Actions hook={hook} onDone={done} onSecret={setSecret} />
        <CopyAs request={requestOf("GET", `webhooks/${id}`)} />
      </PageHead>
      {failure !== null && <ProblemBox failure={failure} retry={reload} />}
      {secret !== null && <Secret text={secret} onClose={() => setSecret(null)} />}
      <Facts
        of={{
          Events: hook.events.join(", "),
          Description: hook.description ?? undefined,
          "Failing since": hook.failing_since === null ? undefined : <FullTime at={hook.failing_since} />,
          Disabled: hook.disabled_at === null ? undefined : (hook.disabled_reason ?? "by hand"),
          "Old secret signs until": hook.old_secret_until === null ? undefined : <FullTime at={hook.old_secret_until} />,
          Created: (
            <>
              <FullTime at={hook.created_at} /> by {hook.created_by}
            </>
          ),
        }}
      />
      <Deliveries key={sent} id={id} />
    </>
  );
}
