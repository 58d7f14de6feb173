import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type SyntheticEvent, type ReactNode } from 'react';
import { withKey } from '../../api/operator.ts';
import type { Deposit } from '../../api/own.ts';
import { api, call } from '../../api/client.ts';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Empty } from '../../ui/empty.tsx';
import { ErrorNote } from '../../ui/error-note.tsx';
import { Field } from '../../ui/field.tsx';
import { Money } from '../../ui/money.tsx';
import { QueryView } from '../../ui/query-view.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { useToast } from '../../ui/toast.tsx';
import { networkName } from '../dashboard/balance/networks.ts';
import { TransactionLink } from '../dashboard/balance/transaction-link.tsx';
import { useAdminKey } from './admin-key.tsx';
import { everyPage, SHOWN_MAX } from './every-page.ts';

/** The account of the operator's own money, by its name in the API. */
const OPERATOR = 'tollgate:operator';

const has = ({ id, payer, transaction }: Deposit, words: string) =>
  [id, payer, transaction ?? ''].some((text) => text.toLowerCase().includes(words));

/** Deposits without an account. The operator finds them by their hash or sender and credits them to an account. */
export function Suspense(): ReactNode {
  const [words, setWords] = useState('');
  const [chosen, setChosen] = useState<Deposit | null>(null);
  const deposits = useQuery({
    queryKey: ['admin', 'suspense'],
    queryFn: () => everyPage((query) => call(api.GET('/admin/v1/deposits', { params: { query } }))),
    refetchInterval: 120_000,
  });
  const isPart = deposits.data !== undefined && deposits.data.length >= SHOWN_MAX;
  const columns: readonly Column<Deposit>[] = [
    {
      id: 'payer',
      head: 'From',
      cell: (row) => (
        <>
          <p className="font-mono text-sm break-all">{row.payer === '' ? 'not told by the chain' : row.payer}</p>
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
    { id: 'amount', head: 'Amount', align: 'right', cell: (row) => <Money micro={row.amount_micro_usdc} /> },
    {
      id: 'credit',
      head: <span className="sr-only">Credit</span>,
      align: 'right',
      cell: (row) => (
        <Button size="small" aria-label={`Credit the deposit of ${row.payer || row.id}`} onClick={() => setChosen(row)}>
          Credit
        </Button>
      ),
    },
  ];
  const wanted = words.trim().toLowerCase();
  return (
    <Card title="Deposits in suspense" flush>
      <div className="border-b border-line px-4 py-4 sm:px-5">
        <Field
          label="Hash, sender or id"
          {...(isPart ? { hint: `Among the newest ${SHOWN_MAX.toLocaleString('en-US')} deposits.` } : {})}
          type="search"
          value={words}
          spellCheck={false}
          onChange={({ target }) => setWords(target.value)}
        />
      </div>
      <QueryView query={deposits}>
        {(rows) => (
          <Table
            caption="Deposits in suspense"
            columns={columns}
            rows={wanted === '' ? rows : rows.filter((row) => has(row, wanted))}
            rowKey={({ id }) => id}
            empty={
              rows.length === 0 ? (
                <Empty
                  title="Nothing is in suspense"
                  text="Money of senders that nobody knows here waits in this list."
                />
              ) : (
                <Empty title="No such deposit" text="It may be credited already, or not be final yet." />
              )
            }
          />
        )}
      </QueryView>
      <Dialog title="Credit a deposit" open={chosen !== null} onClose={() => setChosen(null)}>
        {chosen !== null && <Attribute deposit={chosen} onDone={() => setChosen(null)} />}
      </Dialog>
    </Card>
  );
}

function Attribute({ deposit, onDone }: { readonly deposit: Deposit; readonly onDone: () => void }): ReactNode {
  const [account, setAccount] = useState('');
  const askKey = useAdminKey();
  const toast = useToast();
  const queries = useQueryClient();
  const credit = useMutation({
    mutationFn: async () => {
      const key = await askKey(`Credit the deposit to ${account.trim()}, for good.`);
      if (key === null) return null;
      return call(
        api.POST('/admin/v1/deposits/{id}/attribute', {
          params: { path: deposit },
          body: { account: account.trim() },
          headers: withKey(key),
        }),
      );
    },
    onSuccess: async (answer) => {
      if (answer === null) return;
      await queries.invalidateQueries({ queryKey: ['admin'] });
      toast('Credited.');
      onDone();
    },
  });
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    credit.mutate();
  };
  return (
    <form onSubmit={submit} className="grid gap-4">
      <p className="text-soft">
        <Money micro={deposit.amount_micro_usdc} /> from{' '}
        <span className="font-mono text-sm break-all">{deposit.payer}</span>
      </p>
      <Field
        label="Account"
        hint={`An account that exists, or a wallet in CAIP-10. ${OPERATOR} for money of your own.`}
        required
        maxLength={128}
        spellCheck={false}
        value={account}
        onChange={({ target }) => setAccount(target.value)}
      />
      {credit.error !== null && <ErrorNote error={credit.error} />}
      <Button type="submit" tone="primary" busy={credit.isPending} className="justify-self-end">
        Credit
      </Button>
    </form>
  );
}
