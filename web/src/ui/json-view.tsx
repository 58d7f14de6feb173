import type { ReactNode } from 'react';

const OPEN_DEPTH = 2;
const TEXT_MAX = 2_000;

/** A JSON value as a tree that folds. All of it is text: markup in it stays text. */
export function JsonView({
  value,
  name,
  depth = 0,
}: {
  readonly value: unknown;
  readonly name?: string;
  readonly depth?: number;
}): ReactNode {
  const key = name === undefined ? null : <span className="text-soft">{name}: </span>;
  if (typeof value !== 'object' || value === null)
    return (
      <div className="font-mono text-[13px] leading-[21px] break-words">
        {key}
        <span className={typeof value === 'string' ? 'text-model' : 'text-agent'}>
          {(JSON.stringify(value) ?? 'undefined').slice(0, TEXT_MAX)}
        </span>
      </div>
    );
  const entries = Object.entries(value);
  const [begin, end] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  if (entries.length === 0)
    return (
      <div className="font-mono text-[13px] leading-[21px]">
        {key}
        {begin}
        {end}
      </div>
    );
  return (
    <details open={depth < OPEN_DEPTH} className="font-mono text-[13px] leading-[21px]">
      <summary className="rounded">
        {key}
        {begin}
        <span className="text-soft"> {entries.length} </span>
        {end}
      </summary>
      <div className="ml-1.5 border-l border-line pl-3.5">
        {entries.map(([member, each]) => (
          <JsonView key={member} name={member} value={each} depth={depth + 1} />
        ))}
      </div>
    </details>
  );
}
