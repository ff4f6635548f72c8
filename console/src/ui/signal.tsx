// A form that sends a signal, to a run or to an entity. With a dedup key the same signal counts once.
import { useState } from "preact/hooks";
import type { Request } from "../logic/curl";
import { readJson } from "../logic/form";
import { AskButton } from "./ask";

export interface Signal {
  name: string;
  payload?: unknown;
  dedup_key?: string;
}

export interface SignalProps {
  title: string;
  requestFor: (signal: Signal) => Request;
  /** Resolves with whether the signal was a repetition. */
  send: (signal: Signal, key: string) => Promise<{ seq: number; duplicate: boolean }>;
  onDone?: () => void;
}

export function SignalButton({ title, requestFor, send, onDone }: SignalProps) {
  const [name, setName] = useState("");
  const [text, setText] = useState("{}");
  const [dedup, setDedup] = useState("");
  const payload = readJson("payload", text);
  const signal: Signal = { name: name || "NAME", ...(payload.ok ? { payload: payload.input } : {}), ...(dedup === "" ? {} : { dedup_key: dedup }) };
  return (
    <AskButton
      label="Send a signal"
      title={title}
      verb="Send"
      request={requestFor(signal)}
      run={(key) => {
        if (!payload.ok) return Promise.reject(new Error(payload.faults.payload ?? "The payload is not JSON"));
        return send(signal, key).then((sent) => (sent.duplicate ? "This signal had come before; it counts once" : `The signal is number ${sent.seq}`));
      }}
      {...(onDone === undefined ? {} : { onDone })}
    >
      <label>
        Name
        <input required value={name} maxLength={64} spellcheck={false} onInput={(e) => setName(e.currentTarget.value)} />
      </label>
      <label>
        Payload <span class="faint">as JSON</span>
        <textarea rows={3} value={text} spellcheck={false} onInput={(e) => setText(e.currentTarget.value)} />
      </label>
      {!payload.ok && <p class="fault">{payload.faults.payload}</p>}
      <label>
        Dedup key <span class="faint">optional; the same key counts once</span>
        <input value={dedup} maxLength={255} spellcheck={false} onInput={(e) => setDedup(e.currentTarget.value)} />
      </label>
    </AskButton>
  );
}
