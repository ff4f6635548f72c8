// Schedules with the times at which they start a run next.
import { useState } from "preact/hooks";
import { api, curlOf, must, requestOf } from "../api/client";
import type { Schedule, ScheduleInput } from "../api/types";
import { readJson } from "../logic/form";
import { absolute } from "../logic/time";
import { href } from "../router";
import { AskButton } from "../ui/ask";
import { Card, Command, CopyAs, Empty, Facts, FullTime, Json, Loading, PageHead, ProblemBox, RunLink, Time } from "../ui/bits";
import { usePages, usePolled, useTitle } from "../ui/hooks";
import { PagedTable } from "../ui/list";
import { Table } from "../ui/table";

const REFRESH_MS = 5_000;
const EXAMPLE = { workflow_id: "hello", cron: "0 9 * * 1-5", timezone: "Europe/Berlin" };

const withKey = (id: string, key: string) => ({ path: { schedule_id: id }, header: { "Idempotency-Key": key } });

const put = (id: string, body: ScheduleInput, key: string): Promise<Schedule> =>
  must(api.PUT("/api/v1/schedules/{schedule_id}", { params: withKey(id, key), body }));

/** All that a schedule is made of, so that one member can be changed. */
function inputOf(schedule: Schedule, change: Partial<ScheduleInput>): ScheduleInput {
  const { workflow_id, cron, timezone, overlap, catch_up_s, input, paused } = schedule;
  return { workflow_id, cron, timezone, overlap, catch_up_s, input, paused, ...change };
}

function NewSchedule({ onDone }: { onDone: () => void }) {
  const [id, setId] = useState("");
  const [draft, setDraft] = useState({ workflow_id: "", cron: "0 9 * * 1-5", timezone: "UTC", input: "{}" });
  const read = readJson("input", draft.input);
  const body: ScheduleInput = { workflow_id: draft.workflow_id, cron: draft.cron, timezone: draft.timezone, ...(read.ok ? { input: read.input } : {}) };
  const field = (name: keyof typeof draft, title: string, help: string) => (
    <label>
      {title} <span class="faint">{help}</span>
      <input
        required={name !== "input"}
        value={draft[name]}
        spellcheck={false}
        onInput={(e) => {
          const { value } = e.currentTarget;
          setDraft((old) => ({ ...old, [name]: value }));
        }}
      />
    </label>
  );
  return (
    <AskButton
      label="New schedule"
      title="New schedule"
      verb="Create"
      request={requestOf("PUT", `schedules/${id || "ID"}`, body)}
      run={(key) => put(id, body, key).then(() => "The schedule is active")}
      onDone={onDone}
    >
      <label>
        Name
        <input required value={id} maxLength={64} spellcheck={false} onInput={(e) => setId(e.currentTarget.value)} />
      </label>
      {field("workflow_id", "Workflow", "which it starts")}
      {field("cron", "Cron", "minute hour day month weekday")}
      {field("timezone", "Time zone", "such as Europe/Berlin")}
      {field("input", "Input", "as JSON")}
    </AskButton>
  );
}

function Trigger({ schedule, onDone, small }: { schedule: Schedule; onDone: () => void; small?: boolean }) {
  return (
    <AskButton
      label="Run now"
      {...(small === true ? { small } : {})}
      title={`Start a run of ${schedule.workflow_id} now?`}
      verb="Start"
      request={requestOf("POST", `schedules/${schedule.id}/trigger`, {})}
      run={(key) =>
        must(api.POST("/api/v1/schedules/{schedule_id}/trigger", { params: withKey(schedule.id, key), body: {} })).then(() => "The run has started")
      }
      onDone={onDone}
    >
      <p>With the input of the schedule. Its next times stay as they are.</p>
    </AskButton>
  );
}

export function Schedules() {
  useTitle("Schedules");
  const list = usePages((cursor) => must(api.GET("/api/v1/schedules", { params: { query: { limit: 100, ...(cursor === undefined ? {} : { cursor }) } } })), []);
  return (
    <>
      <PageHead title="Schedules" lead="Runs that start by the clock, each time exactly once.">
        <CopyAs request={requestOf("GET", "schedules")} />
        <NewSchedule onDone={list.reload} />
      </PageHead>
      <PagedTable
        label="Schedules"
        list={list}
        keyOf={(s) => s.id}
        columns={[
          {
            title: "Schedule",
            cell: (s) => (
              <>
                <a href={href("schedules", s.id)} data-entry>
                  {s.id}
                </a>{" "}
                {s.paused && <span class="label">paused</span>}
              </>
            ),
          },
          { title: "Starts", cell: (s) => <a href={href("workflows", s.workflow_id)}>{s.workflow_id}</a> },
          {
            title: "When",
            cell: (s) => (
              <>
                <code>{s.cron}</code> <span class="faint">{s.timezone}</span>
              </>
            ),
          },
          { title: "Next", cell: (s) => <Time at={s.paused ? null : s.next_times[0]} /> },
          { title: "Last", cell: (s) => (s.last_run_id === null ? <Time at={s.last_time} /> : <RunLink id={s.last_run_id} />) },
          { title: "Actions", cell: (s) => <Trigger schedule={s} onDone={list.reload} small /> },
        ]}
        empty={
          <Empty title="No schedules yet">
            <p>A schedule starts a run of a workflow at the times of a cron expression, in a time zone. Make one here or in a terminal:</p>
            <Command text={curlOf("PUT", "schedules/every-morning", EXAMPLE)} />
          </Empty>
        }
      />
    </>
  );
}

const OVERLAP = { skip: "skip this time", queue: "queue the run", allow: "start it as well" } as const;

export function SchedulePage({ id }: { id: string }) {
  useTitle(id);
  const {
    data: schedule,
    failure,
    reload,
  } = usePolled(() => must(api.GET("/api/v1/schedules/{schedule_id}", { params: { path: { schedule_id: id } } })), REFRESH_MS, [id]);
  if (schedule === null) return failure === null ? <Loading /> : <ProblemBox failure={failure} retry={reload} />;
  const turned = inputOf(schedule, { paused: !schedule.paused });
  return (
    <>
      <PageHead title={schedule.id}>
        <Trigger schedule={schedule} onDone={reload} />
        <AskButton
          label={schedule.paused ? "Resume" : "Pause"}
          title={schedule.paused ? "Resume this schedule?" : "Pause this schedule?"}
          verb={schedule.paused ? "Resume" : "Pause"}
          request={requestOf("PUT", `schedules/${id}`, turned)}
          run={(key) => put(id, turned, key).then(() => (schedule.paused ? "The schedule goes on" : "The schedule is paused"))}
          onDone={reload}
        >
          <p>{schedule.paused ? "It starts runs again from its next time on." : "It starts no run until it is resumed."}</p>
        </AskButton>
        <CopyAs request={requestOf("GET", `schedules/${id}`)} />
      </PageHead>
      {failure !== null && <ProblemBox failure={failure} retry={reload} />}
      <Facts
        of={{
          Starts: <a href={href("workflows", schedule.workflow_id)}>{schedule.workflow_id}</a>,
          When: (
            <>
              <code>{schedule.cron}</code> {schedule.timezone}
            </>
          ),
          "If the last run is still active": OVERLAP[schedule.overlap],
          "After an outage": `makes up for ${schedule.catch_up_s} s`,
          "Last run": schedule.last_run_id === null ? "none yet" : <RunLink id={schedule.last_run_id} />,
          Changed: <FullTime at={schedule.updated_at} />,
        }}
      />
      {schedule.last_error != null && (
        <div class="problem">
          <strong>The last time did not start a run</strong>
          <Json value={schedule.last_error} label="Error" />
        </div>
      )}
      <div class="columns">
        <Card title="Next times">
          {schedule.paused ? (
            <p class="faint">None while it is paused.</p>
          ) : (
            <Table
              label="Next times"
              items={schedule.next_times}
              keyOf={(at) => at}
              columns={[
                { title: "In", cell: (at) => <Time at={at} /> },
                { title: "At", cell: (at) => absolute(at) },
              ]}
            />
          )}
        </Card>
        <Card title="Input">
          <Json value={schedule.input} label="Input" />
        </Card>
      </div>
    </>
  );
}
