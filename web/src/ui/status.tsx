import type { ReactNode } from 'react';
import type { ServiceStatus, HealthState } from '../api/catalogue.ts';

type Reported = ServiceStatus | HealthState['status'];

const WORDS = {
  healthy: { word: 'Healthy', tone: 'bg-accent', title: 'It can be called, and calls of the last hour worked.' },
  untried: {
    word: 'Idle',
    tone: 'border-2 border-edge',
    title: 'It is listed, and nobody has called it in the last hour. Whether it works is not known.',
  },
  failing: {
    word: 'Failing',
    tone: 'bg-bad',
    title: 'It is called, and most calls of the last hour failed, or it could not be reached when it was last tried.',
  },
  degraded: { word: 'Degraded', tone: 'bg-gold', title: 'A part of it failed and is not called for a while.' },
  down: {
    word: 'Down',
    tone: 'bg-bad',
    title: 'It failed. It is called again in a while, or if nothing else is left.',
  },
  away: { word: 'Away', tone: 'bg-edge', title: "Its provider's proxy is not connected." },
} as const;

/** Below this share of good calls in the last hour, a service that may be called is shown as failing. */
const FAILING_BELOW = 0.5;

/** As the gateway reports it, and failing if most of the few calls of the last hour failed. */
function stateOf(status: Reported, uptime: number | null): keyof typeof WORDS {
  if (status === 'cooling_down') return 'down';
  const isCalled = status === 'healthy' || status === 'untried';
  return isCalled && uptime !== null && uptime < FAILING_BELOW ? 'failing' : status;
}

/**
 * Whether a service or an offer can be called now. `uptime`: share of the last hour's calls that did not fail, or null
 * if there were none.
 */
export function Status({ status, uptime }: { readonly status: Reported; readonly uptime: number | null }): ReactNode {
  const { word, tone, title } = WORDS[stateOf(status, uptime)];
  return (
    <span title={title} className="inline-flex items-center gap-1.5 text-sm whitespace-nowrap">
      <span aria-hidden className={`size-2 rounded-full ${tone}`} />
      {word}
    </span>
  );
}
