import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type SyntheticEvent, type ReactNode } from 'react';
import { withKey } from '../../api/operator.ts';
import type { Withdrawal } from '../../api/own.ts';
import { isTooMuch } from '../../api/api-error.ts';
import { api, call, data } from '../../api/client.ts';
import { newId } from '../../app/new-id.ts';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Empty } from '../../ui/empty.tsx';
import { ErrorNote } from '../../ui/error-note.tsx';
import { Field, Select } from '../../ui/field.tsx';
import { Money } from '../../ui/money.tsx';
import { formatUsd } from '../../ui/usd.ts';
import { QueryView } from '../../ui/query-view.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { useToast } from '../../ui/toast.tsx';
import { networkName } from '../dashboard/balance/networks.ts';
import { TransactionLink } from '../dashboard/balance/transaction-link.tsx';
import { WITHDRAWAL_STATES } from '../dashboard/balance/withdrawal-states.ts';
import { useAdminKey } from './admin-key.tsx';

const COLUMNS: readonly Column<Withdrawal>[] = [
  {
    id: 'to',
    head: 'To',
    cell: (row) => (
      <>
        <p className="font-mono text-sm break-all">{row.address}</p>
        <p className="text-sm text-soft">
          {networkName(row.network)}, <Time at={row.created_at} />
        </p>
      </>
    ),
  },
  {
    id: 'transaction',
    head: 'Transaction',
    from: 'md',
    cell: (row) => <TransactionLink network={row.network} transaction={row.transaction} />,
  },
  {
    id: 'status',
    head: 'Status',
    cell: (row) => (
      <>
        <Badge tone={WITHDRAWAL_STATES[row.status][1]}>{WITHDRAWAL_STATES[row.status][0]}</Badge>
        {row.reason !== null && <p className="text-sm text-soft">{row.reason}</p>}
      </>
    ),
  },
  { id: 'amount', head: 'Amount', align: 'right', cell: (row) => <Money micro={row.amount_micro_usdc} /> },
];

/** The operator's fees: past withdrawals, and the form for a new one. */
export function Fees({ networks }: { readonly networks: readonly string[] }): ReactNode {
  const [asking, setAsking] = useState(false);
  const withdrawals = useQuery({
    queryKey: ['admin', 'withdrawals'],
    queryFn: () => data(api.GET('/admin/v1/withdrawals')),
    refetchInterval: 30_000,
  });
  return (
    <Card
      title="Withdrawals of fees"
      flush
      action={
        <Button size="small" onClick={() => setAsking(true)}>
          Withdraw fees
        </Button>
      }
    >
      <QueryView query={withdrawals}>
        {(rows) => (
          <Table
            caption="Withdrawals of fees"
            columns={COLUMNS}
            rows={rows}
            rowKey={({ id }) => id}
            empty={
              <Empty title="Nothing was withdrawn" text="Your part of each charge is kept until you withdraw it." />
            }
          />
        )}
      </QueryView>
      <Dialog title="Withdraw fees" open={asking} onClose={() => setAsking(false)}>
        <WithdrawFees networks={networks} onDone={() => setAsking(false)} />
      </Dialog>
    </Card>
  );
}

function WithdrawFees({
  networks,
  onDone,
}: {
  readonly networks: readonly string[];
  readonly onDone: () => void;
}): ReactNode {
  const [network, setNetwork] = useState(networks[0] ?? '');
  const [address, setAddress] = useState('');
  const [usd, setUsd] = useState('');
  // The idempotency key: the form makes one withdrawal, even if it is sent again.
  const [once] = useState(() => `page-${newId()}`);
  const askKey = useAdminKey();
  const toast = useToast();
  const queries = useQueryClient();
  const withdraw = useMutation({
    mutationFn: async () => {
      const key = await askKey(`Withdraw ${formatUsd(Number(usd))} of fees to ${address.trim()}.`);
      if (key === null) return null;
      const body = { network, address: address.trim(), amount_usd: usd.trim() };
      return call(api.POST('/admin/v1/withdrawals', { body, headers: { ...withKey(key), 'idempotency-key': once } }));
    },
    onSuccess: async (answer) => {
      if (answer === null) return;
      await queries.invalidateQueries({ queryKey: ['admin'] });
      toast('The withdrawal is on its way.');
      onDone();
    },
  });
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    withdraw.mutate();
  };
  return (
    <form onSubmit={submit} className="grid gap-4">
      <Select
        label="Network"
        options={networks.map((value) => ({ value, text: networkName(value) }))}
        value={network}
        onChange={({ target }) => setNetwork(target.value)}
      />
      <Field
        label="Address"
        hint="Of a wallet of yours on this network."
        required
        maxLength={64}
        spellCheck={false}
        value={address}
        onChange={({ target }) => setAddress(target.value)}
      />
      <Field
        label="USDC"
        inputMode="decimal"
        required
        pattern="[0-9]+([.][0-9]{1,6})?"
        title="A number such as 25 or 2.50"
        value={usd}
        onChange={({ target }) => setUsd(target.value)}
      />
      {withdraw.error !== null && (
        <ErrorNote
          error={withdraw.error}
          help={isTooMuch(withdraw.error) ? 'Fees come in with each charge. Withdraw what is there.' : undefined}
        />
      )}
      <Button type="submit" tone="primary" busy={withdraw.isPending} className="justify-self-end">
        Withdraw
      </Button>
    </form>
  );
}
