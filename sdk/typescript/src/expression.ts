/** Expressions of a definition, written in TypeScript: references to the run's data, and the `expr` tag. */

/** Where an expression keeps its source: a symbol, so that it hides no member of the data. */
export const SOURCE = Symbol("source");

/**
 * A Lua expression that the server evaluates. In a text it becomes a template, `${…}`; in `when` and `for_each` it stands
 * for itself. {@link expr} and the references of {@link workflow} make them.
 */
export class Expression {
  readonly [SOURCE]: string;

  constructor(source: string) {
    this[SOURCE] = source;
  }

  /** As a template, so that `` `Refund ${input.amount}?` `` reads as it is written. */
  toString(): string {
    return `\${${this[SOURCE]}}`;
  }

  toJSON(): string {
    return this.toString();
  }
}

/**
 * A reference to a value that the server knows when the step begins, such as `input.amount`. Members of a reference are
 * references. Indexes count from 0, as everywhere in TypeScript.
 */
export type Ref<T = unknown> = Expression & (unknown extends T ? AnyRef : RefMembers<T>);

interface AnyRef {
  readonly [member: string]: Ref & AnyRef;
}

type RefMembers<T> =
  T extends ReadonlyArray<infer E>
    ? { readonly [index: number]: Ref<E> }
    : T extends object
      ? { readonly [K in keyof T]-?: Ref<T[K]> }
      : unknown;

const LUA_WORDS = new Set(
  "and break do else elseif end false for function goto if in local nil not or repeat return then true until while".split(
    " ",
  ),
);
const OWN = new Set<PropertyKey>(["toString", "toJSON", "constructor"]);

/** A reference to `source`, whose members are references. */
export function ref<T = unknown>(source: string): Ref<T> {
  return new Proxy(new Expression(source), {
    get(target, member, receiver) {
      if (typeof member === "symbol" || OWN.has(member)) return Reflect.get(target, member, receiver) as unknown;
      return ref(source + path(member));
    },
  }) as Ref<T>;
}

function path(member: string): string {
  if (/^(0|[1-9]\d*)$/.test(member)) return `[${Number(member) + 1}]`; // Lua counts from 1
  return /^[A-Za-z_]\w*$/.test(member) && !LUA_WORDS.has(member) ? `.${member}` : `[${luaText(member)}]`;
}

/**
 * An expression with references and values in it. Values are written as Lua literals, references as themselves.
 *
 * @example
 * ```ts
 * const refund = workflow<{ amount: number }>("refund-large", ({ input }) => [
 *   step.approval("ok", `Refund ${input.amount}?`, { when: expr`${input.amount} > ${100}` }),
 * ]);
 * console.log(refund.definition.steps[0]?.when); // input.amount > 100
 * ```
 */
export function expr(
  texts: TemplateStringsArray,
  ...values: Array<Expression | string | number | boolean | null>
): Expression {
  return new Expression(texts.reduce((source, text, i) => source + literal(values[i - 1] ?? null) + text));
}

function literal(value: Expression | string | number | boolean | null): string {
  if (value instanceof Expression) return value[SOURCE];
  if (typeof value === "string") return luaText(value);
  return value === null ? "nil" : String(value);
}

/** A Lua string literal. Lua has no `\uXXXX`, but takes every other character as it is. */
function luaText(value: string): string {
  const escapes: Record<string, string> = { "\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\0": "\\0" };
  return `"${value.replace(/[\\"\n\r\0]/g, (character) => escapes[character] ?? character)}"`;
}
