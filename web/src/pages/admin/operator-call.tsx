import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type SyntheticEvent, type ReactNode } from 'react';
import { Link } from 'wouter';
import { type AnswerOf, api, data } from '../../api/client.ts';
import type { CallDetail } from '../../api/own.ts';
import { CallFacts } from '../../calls/call-facts.tsx';
import { CallTree } from '../../calls/call-tree.tsx';
import { MoneyLines } from '../../calls/money-lines.tsx';
import { Button } from '../../ui/button.tsx';
import { Copy } from '../../ui/copy.tsx';
import { Card } from '../../ui/card.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorNote } from '../../ui/error-note.tsx';
import { exactMicroUsd } from '../../ui/exact-usd.ts';
import { Field } from '../../ui/field.tsx';
import { QueryView } from '../../ui/query-view.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { formatDuration } from '../../ui/time.tsx';
import { useToast } from '../../ui/toast.tsx';
import { ACCOUNTS, useAccountChange } from './account.ts';
import { accountPage, servicesPage } from './paths.ts';

type FailedAttempt = CallDetail['failed_attempts'][number];

const ATTEMPTS: readonly Column<FailedAttempt>[] = [
  {
    id: 'provider',
    head: 'Provider',
    cell: ({ provider, service, error }) => (
      <>
        <Link href={servicesPage(service)} className="font-medium hover:underline">
          {provider}
        </Link>
        <p className="text-sm break-words text-soft">{error}</p>
      </>
    ),
  },
  { id: 'status', head: 'Status', from: 'sm', cell: ({ upstream_status: status }) => status ?? '–' },
  {
    id: 'time',
    head: 'After',
    align: 'right',
    cell: ({ duration_ms: ms }) => <span className="whitespace-nowrap">{formatDuration(ms)}</span>,
  },
];

/** As many keys of an account are looked at for the name of the call's. */
const KEYS = 100;

/** One call of any account, with its failed attempts, and the form that refunds it. */
export function OperatorCall({
  id,
  account,
  pageOf,
}: {
  /** Id of the call, or of its request. */
  readonly id: string;
  /** Empty: unknown. Then `id` must be that of the call. */
  readonly account: string;
  readonly pageOf: (call: string) => string;
}): ReactNode {
  const [refunding, setRefunding] = useState(false);
  const found = useQuery({
    queryKey: [...ACCOUNTS, 'call', account, id],
    queryFn: async () =>
      (await data(
        api.GET('/admin/v1/calls/{id}', { params: { path: { id }, query: account === '' ? {} : { account } } }),
      )) as object as CallDetail,
    refetchInterval: ({ state }) => (state.data?.state === 'held' ? 2_000 : false),
  });
  const caller = account || found.data?.account;
  const named = useQuery({
    queryKey: [...ACCOUNTS, 'one', caller],
    queryFn: () => data(api.GET('/admin/v1/accounts/{id}', { params: { path: { id: caller! } } })),
    enabled: caller !== undefined,
  });
  const keys = useQuery({
    queryKey: [...ACCOUNTS, 'keys', caller, 'names'],
    queryFn: () =>
      data(api.GET('/admin/v1/accounts/{id}/keys', { params: { path: { id: caller! }, query: { limit: KEYS } } })),
    enabled: caller !== undefined,
  });
  return (
    <QueryView query={found}>
      {(call) => (
        <div className="grid items-start gap-5 xl:grid-cols-2">
          <p className="flex flex-wrap items-center gap-x-6 gap-y-1 xl:col-span-2">
            <span className="flex items-center gap-1 font-mono text-sm break-all">
              {call.id} <Copy text={call.id} label="Copy the id of the call" />
            </span>
            <span>
              by{' '}
              <Link href={accountPage(account || call.account)} className="link break-all">
                {named.data?.label || account || call.account}
              </Link>
            </span>
          </p>
          <CallFacts
            call={call}
            keyName={keys.data?.find(({ hash }) => hash === call.api_key)?.name}
            parentPage={pageOf}
          />
          <Card
            title="Money"
            action={
              call.cost_micro_usdc > 0 &&
              !call.refund && (
                <Button size="small" onClick={() => setRefunding(true)}>
                  Refund
                </Button>
              )
            }
          >
            <MoneyLines call={call} />
          </Card>
          {call.children.length > 0 && (
            <Card title="Calls under this call">
              <CallTree call={call} linked={false} />
            </Card>
          )}
          {call.failed_attempts.length > 0 && (
            <Card title="Failed attempts" flush>
              <Table
                caption="Failed attempts"
                columns={ATTEMPTS}
                rows={call.failed_attempts}
                rowKey={({ provider, service, duration_ms }) => `${provider} ${service} ${duration_ms}`}
              />
            </Card>
          )}
          <Dialog title="Refund a call" open={refunding} onClose={() => setRefunding(false)}>
            {refunding && <RefundForm call={call} onDone={() => setRefunding(false)} />}
          </Dialog>
        </div>
      )}
    </QueryView>
  );
}

function RefundForm({ call, onDone }: { readonly call: CallDetail; readonly onDone: () => void }): ReactNode {
  const [usd, setUsd] = useState('');
  const [reason, setReason] = useState('');
  const toast = useToast();
  const queries = useQueryClient();
  const refund = useAccountChange<AnswerOf<'refundCall'>['data']>(
    async ({ from_provider_micro_usdc: share, is_own_provider: isOwn }) => {
      await queries.invalidateQueries({ queryKey: [...ACCOUNTS, 'call', call.id] });
      toast(
        share > 0 && !isOwn ? `Refunded. Its provider bore ${exactMicroUsd(share)}.` : 'Refunded, from the operator.',
      );
      onDone();
    },
  );
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    const amount = usd.trim();
    refund.mutate({
      confirm: `Refund ${amount === '' ? exactMicroUsd(call.cost_micro_usdc) : `${amount} USD`} of the call ${call.id}.`,
      send: (headers) =>
        api.POST('/admin/v1/calls/{id}/refund', {
          params: { path: { id: call.id } },
          body: { reason: reason.trim(), ...(amount === '' ? {} : { amount_usd: amount }) },
          headers,
        }),
    });
  };
  return (
    <form onSubmit={submit} className="grid gap-4">
      <Field
        label="USD"
        hint={`Empty: all of it, ${exactMicroUsd(call.cost_micro_usdc)}. A call is refunded once.`}
        inputMode="decimal"
        pattern="[0-9]+([.][0-9]{1,6})?"
        title="A number such as 0.25"
        value={usd}
        onChange={({ target }) => setUsd(target.value)}
      />
      <Field
        label="Reason"
        hint="The owner of the account and the provider read it."
        required
        maxLength={500}
        value={reason}
        onChange={({ target }) => setReason(target.value)}
      />
      {refund.error !== null && <ErrorNote error={refund.error} />}
      <Button type="submit" tone="primary" busy={refund.isPending} className="justify-self-end">
        Refund the call
      </Button>
    </form>
  );
}
