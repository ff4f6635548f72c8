/** A field whose text counts when it is entered, not while it is typed. What is typed stays while the page around it changes. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

type Props = Omit<JSX.IntrinsicElements["input"], "value" | "onInput" | "onChange"> & {
  value: string;
  enter: (text: string) => void;
};

export function TextFilter({ value, enter, ...rest }: Props) {
  const [draft, setDraft] = useState(value);
  useEffect(() => setDraft(value), [value]);
  return (
    <input {...rest} spellcheck={false} value={draft} onInput={(e) => setDraft(e.currentTarget.value)} onChange={(e) => enter(e.currentTarget.value.trim())} />
  );
}
