// What an idempotency key stands for: the first request with it, the run that it started, and what came later.
import { useState } from "preact/hooks";
import { api, must, requestOf } from "../api/client";
import type { IdempotencyRecord } from "../api/types";
import { times } from "../logic/words";
import { go, href, query } from "../router";
import { Card, CopyAs, Empty, FullTime, Loading, PageHead, ProblemBox, RunLink } from "../ui/bits";
import { useLoad, useTitle } from "../ui/hooks";

function Facts({ record }: { record: IdempotencyRecord }) {
  return (
    <dl class="facts">
      <div>
        <dt>First request</dt>
        <dd>
          <code>
            {record.method} {record.route}
          </code>{" "}
          <FullTime at={record.created_at} />, answered {record.status}
        </dd>
      </div>
      {record.run_id !== null && (
        <div>
          <dt>Run</dt>
          <dd>
            <RunLink id={record.run_id} />
          </dd>
        </div>
      )}
      <div>
        <dt>Replays</dt>
        <dd>
          {record.replays} {record.last_replayed_at !== null && <FullTime at={record.last_replayed_at} />}
        </dd>
      </div>
      <div>
        <dt>Mismatches</dt>
        <dd>{record.mismatches}</dd>
      </div>
      <div>
        <dt>Expires</dt>
        <dd>{record.expires_at === null ? "never" : <FullTime at={record.expires_at} />}</dd>
      </div>
    </dl>
  );
}

/** One sentence that an operator can pass on. */
function verdictOf({ replays, mismatches }: IdempotencyRecord): string {
  if (mismatches > 0) return `This key was used ${times(mismatches)} for something else, which was refused. The client gives one key to different requests.`;
  if (replays > 0) return `The request was repeated ${times(replays)}. Each repetition got the first answer, and nothing happened twice.`;
  return "The request came once.";
}

function Record({ name }: { name: string }) {
  const { data, failure, reload } = useLoad(() => must(api.GET("/api/v1/idempotency-keys/{key}", { params: { path: { key: name } } })), [name]);
  if (failure?.problem.status === 404)
    return (
      <Empty title="No request has used this key">
        <p>Keys belong to a tenant, and may expire. Is the tenant right?</p>
      </Empty>
    );
  if (failure !== null) return <ProblemBox failure={failure} retry={reload} />;
  if (data === null) return <Loading />;
  return (
    <Card title={data.key} aside={<CopyAs request={requestOf("GET", `idempotency-keys/${encodeURIComponent(name)}`)} />}>
      <Facts record={data} />
      <p>{verdictOf(data)}</p>
      <p class="faint">
        Fingerprint of method, path and body: <code class="hash">{data.fingerprint}</code>
      </p>
    </Card>
  );
}

export function Keys() {
  useTitle("Idempotency");
  const name = query.value.get("key") ?? "";
  const [text, setText] = useState(name);
  const look = (event: Event): void => {
    event.preventDefault();
    if (text !== "") go(`${href("keys")}?key=${encodeURIComponent(text)}`);
  };
  return (
    <>
      <PageHead title="Idempotency" />
      <form class="filters" onSubmit={look}>
        <label>
          Key
          <input data-filter value={text} maxLength={255} spellcheck={false} onInput={(e) => setText(e.currentTarget.value)} />
        </label>
        <button class="primary">Look up</button>
      </form>
      {name === "" ? (
        <Empty title="Look up a key">
          <p>A client sends an idempotency key so that it can repeat a request safely. Here you see what the key stands for, and how often it was repeated.</p>
        </Empty>
      ) : (
        <Record key={name} name={name} />
      )}
    </>
  );
}
