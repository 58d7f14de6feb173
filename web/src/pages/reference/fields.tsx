import { useState, type ReactNode } from 'react';
import { ChevronRight } from 'lucide-react';
import type { Resolve, Schema } from './document.ts';

/** One field of a body, an answer, or a parameter. */
interface FieldFacts {
  readonly name: string;
  readonly schema: Schema;
  readonly required: boolean;
  readonly description?: string;
}

const CHOICES_SHOWN = 12;

/** The type in words: `text`, `list of objects`, `one of a, b`. */
export function typeOf(schema: Schema, resolve: Resolve): string {
  const whole = resolve(schema);
  if (whole.const !== undefined) return JSON.stringify(whole.const);
  if (whole.enum !== undefined) {
    const shown = whole.enum.slice(0, CHOICES_SHOWN).map((each) => JSON.stringify(each));
    return `${shown.join(' | ')}${whole.enum.length > CHOICES_SHOWN ? ' | …' : ''}`;
  }
  const parts = whole.anyOf ?? whole.oneOf;
  if (parts !== undefined) return [...new Set(parts.map((part) => typeOf(part, resolve)))].join(' or ');
  const types = [whole.type ?? (whole.properties ? 'object' : whole.items ? 'array' : 'any')].flat();
  return types
    .map((type) => (type === 'array' ? `array of ${whole.items ? typeOf(whole.items, resolve) : 'any'}` : type))
    .join(' or ');
}

/** Bounds in words: `1 to 64 letters`. */
function boundsOf(schema: Schema): string {
  const range = (least: number | undefined, most: number | undefined, unit: string): string[] => {
    const large = most !== undefined && most >= Number.MAX_SAFE_INTEGER;
    if (least !== undefined && most !== undefined && !large) return [`${least} to ${most}${unit}`];
    if (most !== undefined && !large) return [`at most ${most}${unit}`];
    return least === undefined || (least === 1 && unit !== '') ? [] : [`at least ${least}${unit}`];
  };
  return [
    ...range(schema.minimum, schema.maximum, ''),
    ...range(schema.minLength, schema.maxLength, ' characters'),
    ...range(schema.minItems, schema.maxItems, ' entries'),
    ...(schema.format === undefined ? [] : [schema.format]),
    ...(schema.default === undefined ? [] : [`default ${JSON.stringify(schema.default)}`]),
  ].join(', ');
}

/** The schemas whose members a field shows: its own, those of its entries, and those of its variants. */
function membersOf(schema: Schema, resolve: Resolve): readonly FieldFacts[] {
  const whole = resolve(schema);
  const parts = [...(whole.allOf ?? []), ...(whole.anyOf ?? []), ...(whole.oneOf ?? [])];
  const own = Object.entries(whole.properties ?? {}).map(([name, each]) => ({
    name,
    schema: each,
    required: whole.required?.includes(name) ?? false,
  }));
  const entries = whole.items === undefined ? [] : membersOf(whole.items, resolve);
  const more = typeof whole.additionalProperties === 'object' ? membersOf(whole.additionalProperties, resolve) : [];
  const known = new Map<string, FieldFacts>();
  for (const field of [...own, ...entries, ...more, ...parts.flatMap((part) => membersOf(part, resolve))])
    if (!known.has(field.name)) known.set(field.name, field);
  return [...known.values()];
}

/** The fields of a schema, each with its members folded. */
export const SchemaFields = ({
  schema,
  resolve,
}: {
  readonly schema: Schema;
  readonly resolve: Resolve;
}): ReactNode => {
  const fields = membersOf(schema, resolve);
  if (fields.length === 0) return <p className="font-mono text-[13px] text-soft">{typeOf(schema, resolve)}</p>;
  return <FieldList fields={fields} resolve={resolve} />;
};

export function FieldList({
  fields,
  resolve,
}: {
  readonly fields: readonly FieldFacts[];
  readonly resolve: Resolve;
}): ReactNode {
  return (
    <ul className="grid">
      {fields.map((field) => (
        <FieldRow key={field.name} field={field} resolve={resolve} />
      ))}
    </ul>
  );
}

function FieldRow({ field, resolve }: { readonly field: FieldFacts; readonly resolve: Resolve }): ReactNode {
  const [open, setOpen] = useState(false);
  const schema = resolve(field.schema);
  const text = field.description ?? field.schema.description ?? schema.description ?? '';
  const members = membersOf(schema, resolve);
  const bounds = boundsOf(schema);
  return (
    <li className="min-w-0 border-t border-line py-2.5 first:border-t-0">
      <p className="flex flex-wrap items-baseline gap-x-2.5 gap-y-0.5 text-sm">
        <code className="font-mono text-[13px] font-semibold break-all">{field.name}</code>
        <span className="min-w-0 font-mono text-xs break-words text-soft">{typeOf(schema, resolve)}</span>
        {field.required && <span className="text-xs font-medium text-bad">required</span>}
        {bounds !== '' && <span className="text-xs break-words text-soft">{bounds}</span>}
      </p>
      {text !== '' && (
        <p className="mt-0.5 text-sm break-words text-soft">
          <Prose text={text} />
        </p>
      )}
      {members.length > 0 && (
        <>
          <button
            type="button"
            aria-expanded={open}
            onClick={() => setOpen(!open)}
            className="mt-1 flex items-center gap-1 rounded py-0.5 text-sm text-accent hover:text-accent-deep"
          >
            <ChevronRight size={15} aria-hidden className={`transition-transform ${open ? 'rotate-90' : ''}`} />
            <span>
              {members.length} {members.length === 1 ? 'field' : 'fields'}
              <span className="sr-only"> of {field.name}</span>
            </span>
          </button>
          {open && (
            <div className="mt-1 border-l-2 border-line pl-3.5">
              <FieldList fields={members} resolve={resolve} />
            </div>
          )}
        </>
      )}
    </li>
  );
}

/** A sentence of the document, in which only code is marked. */
export function Prose({ text }: { readonly text: string }): ReactNode {
  return text.split('`').map((part, at) =>
    at % 2 === 0 ? (
      part
    ) : (
      <code key={at} className="rounded bg-sunk px-1 font-mono text-[0.92em] break-words text-ink">
        {part}
      </code>
    ),
  );
}
