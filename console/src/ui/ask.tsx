// A question before something changes. It has one idempotency key, so pressing its button twice is one request.
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { type Failure, newKey } from "../api/client";
import { may, type Allowed } from "../api/session";
import type { Request } from "../logic/curl";
import { CopyAs, ProblemBox, say } from "./bits";
import { Dialog } from "./dialog";

export interface AskProps {
  title: string;
  /** The words on its button. */
  verb: string;
  danger?: boolean;
  request?: Request;
  /** The text that it resolves with is shown when it is done. */
  run: (key: string) => Promise<string>;
  onDone?: () => void;
  onClose: () => void;
  children?: ComponentChildren;
}

export function Ask({ title, verb, danger, request, run, onDone, onClose, children }: AskProps) {
  const [failure, setFailure] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(false);
  const key = useRef(newKey());
  const submit = (event: Event): void => {
    event.preventDefault();
    setBusy(true);
    run(key.current).then(
      (text) => {
        say(text);
        onDone?.();
        onClose();
      },
      (e: unknown) => {
        setBusy(false);
        setFailure(e as Failure);
        key.current = newKey(); // what was refused may be asked again with other values
      },
    );
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={submit}>
        {children}
        {failure !== null && <ProblemBox failure={failure} />}
        <div class="actions">
          <button class={danger === true ? "danger" : "primary"} disabled={busy}>
            {verb}
          </button>
          <button type="button" onClick={onClose}>
            Close
          </button>
          {request !== undefined && <CopyAs request={request} />}
        </div>
      </form>
    </Dialog>
  );
}

export interface AskButtonProps extends Omit<AskProps, "onClose"> {
  label: string;
  small?: boolean;
  /** What the role must allow; without it there is no button. */
  needs?: Allowed;
}

/** A button that asks first. */
export function AskButton({ label, small, needs = "run", ...ask }: AskButtonProps) {
  const [asked, setAsked] = useState(false);
  if (!may(needs)) return null;
  return (
    <>
      <button type="button" class={small === true ? "small" : ""} onClick={() => setAsked(true)}>
        {label}
      </button>
      {asked && <Ask {...ask} onClose={() => setAsked(false)} />}
    </>
  );
}
