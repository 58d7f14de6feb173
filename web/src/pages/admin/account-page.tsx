import { useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { api, call, data } from '../../api/client.ts';
import { AccountName } from '../../account/account-name.tsx';
import { Refusals } from '../../calls/refusals.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Card, Figure } from '../../ui/card.tsx';
import { CsvButton } from '../../ui/csv-button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Select } from '../../ui/field.tsx';
import { Money } from '../../ui/money.tsx';
import { monthName, months } from '../../ui/months.ts';
import { QueryView } from '../../ui/query-view.tsx';
import { ACCOUNTS, type Account } from './account.ts';
import { AccountCalls } from './account-calls.tsx';
import { AccountChanges } from './account-changes.tsx';
import { AccountLimits } from './account-limits.tsx';
import { AccountMovements } from './account-movements.tsx';
import { AccountNotes } from './account-notes.tsx';
import { AccountPeople } from './account-people.tsx';
import { Usage } from './usage.tsx';
import { CreditForm } from './credit-form.tsx';

/** An account: its money, what it used, and its calls. `pageOf`: the address of a call. */
export function AccountPage({
  id,
  pageOf,
}: {
  readonly id: string;
  readonly pageOf: (call: string) => string;
}): ReactNode {
  const account = useQuery({
    queryKey: [...ACCOUNTS, 'one', id],
    queryFn: () => data(api.GET('/admin/v1/accounts/{id}', { params: { path: { id } } })),
  });
  return (
    <QueryView query={account}>
      {(found) => (
        <div className="grid gap-5">
          <Summary account={found} />
          <div className="grid gap-5 lg:grid-cols-2">
            <AccountLimits account={found} />
            <AccountNotes account={found} />
          </div>
          <Usage account={found.id} />
          <AccountCalls id={found.id} pageOf={pageOf} />
          <Refusals
            queryKey={[...ACCOUNTS, 'refusals', found.id]}
            read={() => call(api.GET('/admin/v1/accounts/{id}/refusals', { params: { path: { id: found.id } } }))}
            guide="/docs/guide/run/raise-a-limit"
          />
          <div className="grid items-start gap-5 xl:grid-cols-2">
            <div className="grid min-w-0 gap-5">
              <AccountMovements id={found.id} pageOf={pageOf} />
              <MonthFiles id={found.id} />
            </div>
            <AccountPeople id={found.id} />
          </div>
        </div>
      )}
    </QueryView>
  );
}

/** The statement of a month of the account, and its use in the columns of FOCUS, as files. */
function MonthFiles({ id }: { readonly id: string }): ReactNode {
  const [month, setMonth] = useState(() => months()[0]!);
  const path = `/admin/v1/accounts/${encodeURIComponent(id)}/statements/${month}`;
  const name = id.split(':').at(-1)!;
  return (
    <Card title="Statement of a month">
      <p className="mb-4 text-soft">Every movement with the balance after it, in UTC. FOCUS is for FinOps tools.</p>
      <div className="flex flex-wrap items-end gap-3">
        <Select
          label="Month"
          options={months().map((value) => ({ value, text: monthName(value) }))}
          value={month}
          onChange={({ target }) => setMonth(target.value)}
        />
        <CsvButton path={`${path}?format=csv`} name={`statement-${name}-${month}.csv`} />
        <CsvButton path={`${path}/focus`} name={`focus-${name}-${month}.csv`} text="FOCUS" />
      </div>
    </Card>
  );
}

function Summary({ account }: { readonly account: Account }): ReactNode {
  const [open, setOpen] = useState<'credit' | 'change' | null>(null);
  const { movements_micro_usdc: moved, total_usage_micro_usdc: used = 0, provider } = account;
  const close = () => setOpen(null);
  const figures: readonly (readonly [string, number | undefined])[] = [
    ['Balance', account.balance_micro_usdc],
    ['Locked', account.locked_micro_usdc],
    ['Used', used],
    ['Credited', moved?.credited],
    ['Debited', moved?.debited],
    ['Refunded', moved?.refunded],
    ['Earnings', provider?.earnings_micro_usdc],
  ];
  return (
    <Card
      title={
        <span className="flex flex-wrap items-center gap-2">
          {account.label === '' ? <AccountName account={account.id} /> : account.label}
          {account.state !== 'open' && (
            <Badge tone={account.state === 'frozen' ? 'warn' : 'bad'}>{account.state}</Badge>
          )}
        </span>
      }
      action={
        <span className="flex gap-2">
          <Button size="small" onClick={() => setOpen('credit')}>
            Credit
          </Button>
          <Button size="small" onClick={() => setOpen('change')}>
            Change
          </Button>
        </span>
      }
    >
      <p className="mb-4 font-mono text-xs break-all text-soft">{account.id}</p>
      <dl className="grid grid-cols-2 gap-6 md:grid-cols-4">
        {figures.map(
          ([name, micro]) => micro !== undefined && <Figure key={name} name={name} value={<Money micro={micro} />} />,
        )}
      </dl>
      <Dialog title="Credit an account" open={open === 'credit'} onClose={close}>
        {open === 'credit' && <CreditForm account={account} onDone={close} />}
      </Dialog>
      <Dialog title="Change an account" open={open === 'change'} onClose={close}>
        {open === 'change' && <AccountChanges id={account.id} onDone={close} />}
      </Dialog>
    </Card>
  );
}
