import type { ReactNode } from 'react';
import type { CallRow } from '../api/own.ts';
import { Badge } from '../ui/badge.tsx';

const WORDS = {
  complete: ['Complete', 'plain'],
  cut: ['Cut', 'warn'],
  over_cap: ['Over its cap', 'warn'],
  failed: ['Failed', 'bad'],
  continued: ['Continued', 'plain'],
  cancelled: ['Cancelled', 'warn'],
  stopped: ['Stopped', 'warn'],
} as const;

/** How a batch ended says little of its lines, so it has no colour. */
const BATCH_WORDS: Readonly<Record<string, string>> = {
  completed: 'Completed',
  failed: 'Failed',
  expired: 'Expired',
  cancelled: 'Cancelled',
};

/** The outcome of a call in one word. */
export function Outcome({
  of,
}: {
  readonly of: Pick<CallRow, 'state' | 'outcome' | 'failed' | 'waiting' | 'primitive' | 'is_batch'>;
}): ReactNode {
  if (of.is_batch) return <Badge>{BATCH_WORDS[of.outcome ?? ''] ?? (of.state === 'held' ? 'Running' : 'Over')}</Badge>;
  if (of.waiting === true) return <Badge tone="warn">Waiting for you</Badge>;
  // A tool's server may wait for its client's answer, so the gateway doesn't know whether the call runs.
  if (of.state === 'held') return <Badge tone="good">{of.primitive === 'tool' ? 'Open' : 'Running'}</Badge>;
  if (of.failed) return <Badge tone="bad">Failed</Badge>;
  const known = Object.hasOwn(WORDS, of.outcome ?? '') ? WORDS[of.outcome as keyof typeof WORDS] : null;
  if (known !== null) return <Badge tone={known[1]}>{known[0]}</Badge>;
  return <Badge tone={of.state === 'settled' ? 'plain' : 'warn'}>{of.outcome ?? of.state}</Badge>;
}
