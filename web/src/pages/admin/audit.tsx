import { useMutation, useQuery } from '@tanstack/react-query';
import { BadgeCheck, CircleAlert } from 'lucide-react';
import type { ReactNode } from 'react';
import { withKey } from '../../api/operator.ts';
import { api, call, data } from '../../api/client.ts';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { QueryView } from '../../ui/query-view.tsx';
import { ErrorNote } from '../../ui/error-note.tsx';
import { Time } from '../../ui/time.tsx';
import { useToast } from '../../ui/toast.tsx';
import { useAdminKey } from './admin-key.tsx';

/** The audit of the ledger, and the rebuild of the figures that are derived from it. */
export default function Audit(): ReactNode {
  return (
    <div className="grid gap-5">
      <Checks />
      <Figures />
    </div>
  );
}

function Figures(): ReactNode {
  const askKey = useAdminKey();
  const toast = useToast();
  const rebuild = useMutation({
    mutationFn: async () => {
      const key = await askKey('Make the figures of all days anew.');
      return key === null ? null : call(api.POST('/admin/v1/analytics/rebuild', { headers: withKey(key) }));
    },
    onSuccess: (answer) => {
      if (answer !== null) toast('The figures are being made anew.');
    },
  });
  return (
    <Card
      title="Figures"
      action={
        <Button size="small" busy={rebuild.isPending} onClick={() => rebuild.mutate()}>
          Make anew
        </Button>
      }
    >
      <p className="text-soft">
        Figures of days are sums of the journal. If the check “analytics” does not hold, make them anew: calls go on
        meanwhile, and figures are too low until it is done.
      </p>
      {rebuild.error !== null && <ErrorNote error={rebuild.error} />}
    </Card>
  );
}

/** Runs the audit and shows its result. */
function Checks(): ReactNode {
  const audit = useQuery({
    queryKey: ['admin', 'audit'],
    queryFn: () => data(api.GET('/admin/v1/audit')),
    staleTime: Infinity,
  });
  return (
    <Card
      title="Audit of the ledger"
      action={
        <Button size="small" busy={audit.isFetching} onClick={() => void audit.refetch()}>
          Audit again
        </Button>
      }
    >
      <QueryView query={audit}>
        {({ ok, checks }) => (
          <>
            <p
              className={`mb-4 flex gap-3 rounded-lg px-4 py-3 ${ok ? 'bg-accent-wash text-accent' : 'bg-bad-wash text-bad'}`}
            >
              {ok ? (
                <BadgeCheck size={20} aria-hidden className="mt-0.5 shrink-0" />
              ) : (
                <CircleAlert size={20} aria-hidden className="mt-0.5 shrink-0" />
              )}
              <span>
                <b>{ok ? 'Every check holds.' : `${checks.filter((check) => !check.ok).length} checks do not hold.`}</b>{' '}
                <Time at={audit.dataUpdatedAt} exact />
              </span>
            </p>
            <ul>
              {checks.map((check) => (
                <li
                  key={check.name}
                  className="grid gap-x-4 border-t border-line py-2.5 sm:grid-cols-[11rem_minmax(0,1fr)_auto]"
                >
                  <span className="font-medium first-letter:uppercase">{check.name}</span>
                  <span className="break-words text-soft">{check.detail}</span>
                  <span className={check.ok ? 'text-accent' : 'font-semibold text-bad'}>
                    {check.ok ? 'holds' : 'does not hold'}
                  </span>
                </li>
              ))}
            </ul>
          </>
        )}
      </QueryView>
    </Card>
  );
}
