import type { ReactNode } from 'react';
import type { ServiceStatus, Standing } from '../api/catalogue.ts';

const WORDS: Readonly<Record<ServiceStatus | Standing['status'], { readonly word: string; readonly tone: string }>> = {
  healthy: { word: 'Healthy', tone: 'bg-accent' },
  degraded: { word: 'Degraded', tone: 'bg-gold' },
  cooling_down: { word: 'Cooling down', tone: 'bg-gold' },
  down: { word: 'Down', tone: 'bg-bad' },
  away: { word: 'Away', tone: 'bg-edge' },
};

/** Whether a service or an offer can be called now. */
export function Status({ status }: { readonly status: keyof typeof WORDS }): ReactNode {
  const { word, tone } = WORDS[status];
  return (
    <span className="inline-flex items-center gap-1.5 text-sm whitespace-nowrap">
      <span aria-hidden className={`size-2 rounded-full ${tone}`} />
      {word}
    </span>
  );
}
