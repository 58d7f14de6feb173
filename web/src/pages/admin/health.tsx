import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { BOOT } from '../../app/boot.ts';
import { Badge } from '../../ui/badge.tsx';
import { Card } from '../../ui/card.tsx';
import { QueryView } from '../../ui/query-view.tsx';

interface State {
  readonly status?: string;
  readonly checks?: Readonly<Record<string, string>>;
}

/** `fetch` is used directly because a gateway that isn't ready answers with an error status. */
const findState = async (): Promise<State> => (await (await fetch('/health/ready')).json()) as State;

/** Shows whether the gateway accepts calls. */
export function Health(): ReactNode {
  const health = useQuery({ queryKey: ['admin', 'health'], queryFn: findState, refetchInterval: 10_000 });
  return (
    <Card title="Health" action={<span className="text-sm text-soft">tollgate {BOOT.version}</span>}>
      <QueryView query={health}>
        {({ checks = {} }) => (
          <dl className="grid gap-y-2.5">
            {Object.entries(checks).map(([name, state]) => (
              <div key={name} className="grid grid-cols-[11rem_minmax(0,1fr)] items-center gap-4">
                <dt className="first-letter:uppercase">{name}</dt>
                <dd>
                  <Badge tone={state === 'ok' ? 'good' : 'bad'}>{state}</Badge>
                </dd>
              </div>
            ))}
          </dl>
        )}
      </QueryView>
      <p className="mt-5 text-sm text-soft">
        Metrics for Prometheus are at <code>/metrics</code>. The log of the gateway has every refused call and every
        error.
      </p>
    </Card>
  );
}
