import { useState, type ReactNode } from 'react';

const OPEN_DEPTH = 2;
const TEXT_MAX = 2_000;
/** Number of members that are shown first, and that each click adds. */
const MEMBERS = 100;

/** A JSON value as a folding tree. All content is shown as text, never as markup. Folded parts are not rendered. */
export function JsonView({
  value,
  name,
  depth = 0,
}: {
  readonly value: unknown;
  readonly name?: string;
  readonly depth?: number;
}): ReactNode {
  const key = name === undefined ? null : <span className="text-soft">{name.slice(0, TEXT_MAX)}: </span>;
  if (typeof value !== 'object' || value === null)
    return (
      <div className="font-mono text-[13px] leading-[21px] break-words">
        {key}
        <span className={typeof value === 'string' ? 'text-model' : 'text-agent'}>{textOf(value)}</span>
      </div>
    );
  const entries = Object.entries(value);
  const brackets = Array.isArray(value) ? '[]' : '{}';
  if (entries.length === 0)
    return (
      <div className="font-mono text-[13px] leading-[21px]">
        {key}
        {brackets}
      </div>
    );
  return <Members name={key} entries={entries} brackets={brackets} depth={depth} />;
}

function Members({
  name,
  entries,
  brackets,
  depth,
}: {
  readonly name: ReactNode;
  readonly entries: readonly (readonly [string, unknown])[];
  readonly brackets: string;
  readonly depth: number;
}): ReactNode {
  const [open, setOpen] = useState(depth < OPEN_DEPTH);
  const [shown, setShown] = useState(MEMBERS);
  return (
    <details
      open={open}
      onToggle={(event) => {
        event.stopPropagation();
        setOpen(event.currentTarget.open);
      }}
      className="font-mono text-[13px] leading-[21px]"
    >
      <summary className="rounded break-words">
        {name}
        {brackets[0]}
        <span className="text-soft"> {entries.length} </span>
        {brackets[1]}
      </summary>
      {open && (
        <div className="ml-1.5 border-l border-line pl-3.5">
          {entries.slice(0, shown).map(([member, each]) => (
            <JsonView key={member} name={member} value={each} depth={depth + 1} />
          ))}
          {entries.length > shown && (
            <button type="button" className="link" onClick={() => setShown(shown + MEMBERS)}>
              {entries.length - shown} more
            </button>
          )}
        </div>
      )}
    </details>
  );
}

function textOf(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined';
  return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}… (${text.length} letters)` : text;
}
