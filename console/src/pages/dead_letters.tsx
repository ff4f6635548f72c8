// Jobs whose attempts are used up: look at them, redrive one or many, or discard them.
import { useEffect, useRef, useState } from "preact/hooks";
import { api, must, newKey, requestOf } from "../api/client";
import { may } from "../api/session";
import type { Job } from "../api/types";
import { listen } from "../live/tenant";
import type { Request } from "../logic/curl";
import { errorText } from "../logic/error";
import { fits, redriveAll, type LetterFilter, type Progress } from "../logic/redrive";
import { plural } from "../logic/words";
import { go, href, query } from "../router";
import { AskButton } from "../ui/ask";
import { CopyAs, Empty, Loading, PageHead, ProblemBox, RunLink, say, Time } from "../ui/bits";
import { Dialog } from "../ui/dialog";
import { useLoad, useThrottled, useTitle } from "../ui/hooks";
import { Table } from "../ui/table";

const PAGE = 200;
const PAGES_MAX = 10;
const SHOWN_MAX = 300;

interface Letters {
  items: Job[];
  isAll: boolean;
}

async function readLetters(): Promise<Letters> {
  const items: Job[] = [];
  let cursor: string | null = null;
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const query: { limit: number; cursor?: string } = { limit: PAGE, ...(cursor === null ? {} : { cursor }) };
    const page: { items: Job[]; next_cursor: string | null } = await must(api.GET("/api/v1/dead-letters", { params: { query } }));
    items.push(...page.items);
    cursor = page.next_cursor;
    if (cursor === null) break;
  }
  return { items, isAll: cursor === null };
}

const redrive = (job: Job, key: string): Promise<Job> =>
  must(api.POST("/api/v1/dead-letters/{job_id}/retry", { params: { path: { job_id: job.job_id }, header: { "Idempotency-Key": key } }, body: {} }));

const discard = (job: Job, key: string): Promise<Job> =>
  must(api.DELETE("/api/v1/dead-letters/{job_id}", { params: { path: { job_id: job.job_id }, header: { "Idempotency-Key": key } } }));

const ownerOf = (job: Job): string => job.workflow_id ?? job.entity?.type ?? "";

function Owner({ job }: { job: Job }) {
  if (job.entity !== undefined) return <a href={href("entities", job.entity.type, job.entity.id)}>{`${job.entity.type} ${job.entity.id}`}</a>;
  return (
    <>
      {job.workflow_id} {job.run_id !== null && <RunLink id={job.run_id} />}
    </>
  );
}

function requestFor(letters: readonly Job[]): Request {
  const [first, ...rest] = letters.map((job) => requestOf("POST", `dead-letters/${job.job_id}/retry`, {}));
  return first === undefined ? requestOf("GET", "dead-letters") : { ...first, others: rest.map(({ url }) => url) };
}

/** First a dry run: what would be redriven. Then the work, with its progress. */
function BulkRedrive({ letters, onClose }: { letters: readonly Job[]; onClose: () => void }) {
  const [progress, setProgress] = useState<Progress | null>(null);
  const [over, setOver] = useState(false);
  const key = useRef(newKey()); // with the letter's id: pressing again redrives nothing twice
  const count = plural(letters.length, "dead letter");
  const start = (): void => {
    setProgress({ done: 0, failed: [] });
    void redriveAll(letters, (letter) => redrive(letter, `${key.current}-${letter.job_id}`), setProgress).then((result) => {
      setOver(true);
      say(`${plural(result.done, "dead letter")} redriven`);
    });
  };
  const steps = [...new Set(letters.map((job) => `${ownerOf(job)} · ${job.step ?? job.type}`))];
  return (
    <Dialog title={`Redrive ${count}?`} onClose={onClose}>
      <p>This is a dry run: nothing has changed yet. These would be tried again, each with fresh attempts:</p>
      <ul class="plain">
        {steps.map((name) => (
          <li key={name}>
            {name}: {letters.filter((job) => `${ownerOf(job)} · ${job.step ?? job.type}` === name).length}
          </li>
        ))}
      </ul>
      {progress !== null && (
        <p role="status">
          <progress value={progress.done + progress.failed.length} max={letters.length} aria-label="Redriven" /> {progress.done} of {letters.length} redriven
          {progress.failed.length > 0 && `, ${progress.failed.length} refused`}
        </p>
      )}
      {progress?.failed.slice(0, 5).map((failed) => (
        <p class="fault" key={failed.job_id}>
          {failed.job_id}: {failed.reason}
        </p>
      ))}
      <div class="actions">
        {!over && (
          <button type="button" class="primary" disabled={progress !== null} onClick={start}>
            Redrive {count}
          </button>
        )}
        <button type="button" onClick={onClose}>
          Close
        </button>
        <CopyAs request={requestFor(letters)} />
      </div>
    </Dialog>
  );
}

function Filters({ filter, letters }: { filter: LetterFilter; letters: readonly Job[] }) {
  const put = (change: Partial<LetterFilter>): void => {
    const next = { ...filter, ...change };
    const asked = new URLSearchParams(Object.entries(next).filter(([, value]) => value !== ""));
    go(`${href("dead-letters")}${asked.size === 0 ? "" : `?${asked.toString()}`}`, true);
  };
  return (
    <form class="filters" onSubmit={(e) => e.preventDefault()}>
      <label>
        Workflow or entity
        <select value={filter.workflow} onChange={(e) => put({ workflow: e.currentTarget.value })}>
          <option value="">All</option>
          {[...new Set(letters.map(ownerOf))].sort().map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <label>
        Error, step or id
        <input data-filter type="search" value={filter.text} spellcheck={false} onInput={(e) => put({ text: e.currentTarget.value })} />
      </label>
    </form>
  );
}

function LetterTable({ letters, onDone }: { letters: readonly Job[]; onDone: () => void }) {
  return (
    <Table
      label="Dead letters"
      items={letters.slice(0, SHOWN_MAX)}
      keyOf={(job) => job.job_id}
      columns={[
        { title: "Of", cell: (job) => <Owner job={job} /> },
        { title: "Step", cell: (job) => job.step ?? job.type },
        { title: "Error", cell: (job) => <span class="error-text">{errorText(job.error) || JSON.stringify(job.error)}</span> },
        { title: "Attempts", cell: (job) => job.attempt, numeric: true },
        { title: "Since", cell: (job) => <Time at={job.finished_at ?? job.created_at} /> },
        {
          title: "Actions",
          cell: (job) => (
            <div class="actions">
              <AskButton
                label="Redrive"
                small
                title="Redrive this job?"
                verb="Redrive the job"
                request={requestOf("POST", `dead-letters/${job.job_id}/retry`, {})}
                run={(key) => redrive(job, key).then(() => "The job will be tried again")}
                onDone={onDone}
              >
                <p>The job gets fresh attempts. What its run had done before stays as it is.</p>
              </AskButton>
              <AskButton
                label="Discard"
                small
                danger
                title="Discard this dead letter?"
                verb="Discard"
                request={requestOf("DELETE", `dead-letters/${job.job_id}`)}
                run={(key) => discard(job, key).then(() => "The dead letter is discarded")}
                onDone={onDone}
              >
                <p>It leaves this list. Its run stays as it is.</p>
              </AskButton>
            </div>
          ),
        },
      ]}
    />
  );
}

export function DeadLetters() {
  useTitle("Dead letters");
  const { data, failure, reload } = useLoad(readLetters, []);
  const refresh = useThrottled(reload, 1_000);
  const [bulk, setBulk] = useState<Job[] | null>(null);
  useEffect(() => listen(refresh), []);
  const filter: LetterFilter = { workflow: query.value.get("workflow") ?? "", text: query.value.get("text") ?? "" };
  const all = data?.items ?? [];
  const letters = all.filter((job) => fits(job, filter));
  return (
    <>
      <PageHead title="Dead letters" lead="Jobs that failed as often as they may. They stay here until they are redriven or discarded.">
        <CopyAs request={requestOf("GET", "dead-letters")} />
        {may("run") && (
          <button type="button" class="primary" disabled={letters.length === 0} onClick={() => setBulk(letters)}>
            Redrive {filter.workflow === "" && filter.text === "" ? "all" : "these"}…
          </button>
        )}
      </PageHead>
      {failure !== null && <ProblemBox failure={failure} retry={reload} />}
      {data === null && failure === null && <Loading />}
      {all.length > 0 && <Filters filter={filter} letters={all} />}
      {data !== null && letters.length === 0 && (
        <Empty title={all.length === 0 ? "No dead letters" : "No dead letter fits this filter"}>
          <p>
            A step that fails is tried again as its <code>retry</code> says. When its attempts are used up, its job comes here and its run fails. Redriving
            gives the job fresh attempts, and the run goes on where it stopped.
          </p>
        </Empty>
      )}
      {letters.length > 0 && <LetterTable letters={letters} onDone={reload} />}
      {(letters.length > SHOWN_MAX || data?.isAll === false) && (
        <p class="faint">
          {Math.min(SHOWN_MAX, letters.length)} of {letters.length}
          {data?.isAll === false && " or more"} are shown.
        </p>
      )}
      {bulk !== null && (
        <BulkRedrive
          letters={bulk}
          onClose={() => {
            setBulk(null);
            reload();
          }}
        />
      )}
    </>
  );
}
