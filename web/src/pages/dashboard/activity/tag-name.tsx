import { useQuery } from '@tanstack/react-query';
import { useEffect, useId, useState, type ReactNode } from 'react';
import { findCalls, useKeys } from '../../../api/own.ts';

/** Milliseconds without a change before the figures are asked for. */
const PAUSE_MS = 400;
const LOOKED_AT = 100;
/** As the gateway takes names of tags. */
const NAME = /^[A-Za-z][\w.-]{0,31}$/;

/** The name of the tag by whose values calls are grouped. It suggests the tags of the keys and of the last calls. */
export function TagName({
  name,
  onChange,
}: {
  readonly name: string;
  readonly onChange: (name: string) => void;
}): ReactNode {
  const id = useId();
  const [typed, setTyped] = useState(name);
  const { data: keys = [] } = useKeys();
  const { data: calls } = useQuery({ queryKey: ['tags'], queryFn: () => findCalls({ limit: LOOKED_AT }) });
  useEffect(() => {
    if (typed === name || !NAME.test(typed)) return;
    const timer = setTimeout(() => onChange(typed), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [typed, name, onChange]);
  const names = new Set([...keys, ...(calls?.data ?? [])].flatMap(({ tags }) => Object.keys(tags ?? {})));
  return (
    <>
      <input
        aria-label="Name of the tag"
        list={id}
        value={typed}
        maxLength={32}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => setTyped(event.target.value)}
        className="h-9 w-36 rounded-md border border-edge bg-card px-2 text-sm"
      />
      <datalist id={id}>
        {[...names].sort().map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </>
  );
}
