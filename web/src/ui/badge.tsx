import type { ReactNode } from 'react';

type Tone = 'plain' | 'good' | 'warn' | 'bad';

const TONES: Readonly<Record<Tone, string>> = {
  plain: 'bg-sunk text-soft',
  good: 'bg-accent-wash text-accent',
  warn: 'bg-warn-wash text-warn',
  bad: 'bg-bad-wash text-bad',
};

/** A state as a word. The colour adds nothing that the word doesn't say. */
export function Badge({ tone = 'plain', children }: { readonly tone?: Tone; readonly children: ReactNode }): ReactNode {
  return (
    <span className={`inline-flex h-6 items-center rounded px-2 text-xs font-medium whitespace-nowrap ${TONES[tone]}`}>
      {children}
    </span>
  );
}
