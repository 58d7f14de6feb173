import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Printer } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import { api, call } from '../../../api/client.ts';
import { actsFor } from '../../../api/acting.ts';
import { useOwnOrganisations } from '../../../api/organisation.ts';
import { Button } from '../../../ui/button.tsx';
import { Card, Figure } from '../../../ui/card.tsx';
import { Select } from '../../../ui/field.tsx';
import { alignedMicroUsd, exactMicroUsd } from '../../../ui/exact-usd.ts';
import { QueryView } from '../../../ui/query-view.tsx';
import { Skeleton } from '../../../ui/skeleton.tsx';
import { CsvButton } from '../../../ui/csv-button.tsx';
import { Frame } from '../frame.tsx';
import { monthName, months } from '../../../ui/months.ts';

const zones = (): readonly string[] => [...new Set(['UTC', Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC'])];

const read = (month: string, zone: string) =>
  call(
    api.GET('/api/v1/statements/{month}', {
      params: { path: { month }, query: { time_zone: zone, calls: 'daily', format: 'json' } },
    }),
  );
type Statement = Extract<Awaited<ReturnType<typeof read>>, object>['data'];
type Movement = Statement['movements'][number];

const KINDS: Readonly<Record<Movement['kind'], string>> = {
  call: 'Call',
  calls: 'Calls',
  credit: 'Credited by the operator',
  debit: 'Debited by the operator',
  refund: 'Refund of a call',
  closing: 'Taken when the account was closed',
  deposit: 'Deposit',
  withdrawal: 'Withdrawal',
  withdrawal_returned: 'Withdrawal given back',
  play_money: 'Play money of this development gateway',
  other: 'Other',
};

export default function StatementPage(): ReactNode {
  const [month, setMonth] = useState(() => months()[0]!);
  const [zone, setZone] = useState('UTC');
  const query = new URLSearchParams({ time_zone: zone, format: 'csv' });
  return (
    <Frame
      title={`Statement of ${monthName(month)}`}
      lead="Every movement of your money in a month, with the balance before and after it."
    >
      {(session) => (
        <div className="grid gap-5">
          <div className="flex flex-wrap items-end gap-3 print:hidden">
            <Select
              label="Month"
              options={months().map((value) => ({ value, text: monthName(value) }))}
              value={month}
              onChange={({ target }) => setMonth(target.value)}
            />
            <Select
              label="Time zone"
              options={zones().map((value) => ({ value, text: value }))}
              value={zone}
              onChange={({ target }) => setZone(target.value)}
            />
            <CsvButton path={`/api/v1/statements/${month}?${query}`} name={`statement-${month}.csv`} />
            <CsvButton path={`/api/v1/statements/${month}/focus`} name={`focus-${month}.csv`} text="FOCUS" />
            <Button onClick={() => print()}>
              <Printer size={16} aria-hidden />
              Print
            </Button>
          </div>
          <Month month={month} zone={zone} account={actsFor() ?? session.account} />
        </div>
      )}
    </Frame>
  );
}

/** The statement is read once the account is known. */
function Month({
  month,
  zone,
  account,
}: {
  readonly month: string;
  readonly zone: string;
  readonly account: string;
}): ReactNode {
  const statement = useQuery({
    queryKey: ['statement', month, zone],
    queryFn: () => read(month, zone),
    placeholderData: keepPreviousData,
  });
  return (
    <QueryView query={statement} loading={<Skeleton className="h-72 w-full rounded-xl" />}>
      {({ data }) => <Shown statement={data} account={account} />}
    </QueryView>
  );
}

function Shown({ statement, account }: { readonly statement: Statement; readonly account: string }): ReactNode {
  const acting = actsFor();
  const organisations = useOwnOrganisations(acting !== null).data;
  const label = organisations?.find((one) => one.account === account)?.label ?? '';
  const { movements, opening_micro_usdc: opening, closing_micro_usdc: closing } = statement;
  return (
    <>
      <Card>
        <dl className="grid grid-cols-2 gap-6 md:grid-cols-4 print:grid-cols-4">
          <Figure name="Opening balance" value={exactMicroUsd(opening)} note={`of days in ${statement.time_zone}`} />
          <Figure
            name="Charged"
            value={exactMicroUsd(statement.charged_micro_usdc)}
            note={`${statement.charged_calls.toLocaleString('en')} charged calls`}
          />
          <Figure
            name="Other movements"
            value={exactMicroUsd(closing - opening + statement.charged_micro_usdc)}
            note="credits, refunds, withdrawals"
          />
          <Figure
            name={statement.complete ? 'Closing balance' : 'Balance now'}
            value={exactMicroUsd(closing)}
            note={statement.complete ? 'with what running calls had locked' : 'with what running calls have locked'}
          />
        </dl>
        <p className="mt-4 text-sm break-words">
          {label !== '' && <span className="font-medium">{label} </span>}
          <span className="font-mono text-xs break-all text-soft">{account}</span>
        </p>
      </Card>
      <Card title="Movements" flush>
        {/* The table of other pages has only the rows near the screen, and would print only these. */}
        <table className="w-full text-sm">
          <thead>
            <tr className="border-b border-line text-left text-soft">
              <th className="px-4 py-2 font-medium max-sm:hidden">Day</th>
              <th className="px-4 py-2 font-medium">Movement</th>
              <th className="px-4 py-2 text-right font-medium">Amount</th>
              <th className="px-4 py-2 text-right font-medium max-sm:hidden">Balance</th>
            </tr>
          </thead>
          <tbody>
            {movements.map((movement, index) => (
              <tr key={`${index} ${movement.at}`} className="break-inside-avoid border-b border-line align-top">
                <td className="px-4 py-2 whitespace-nowrap max-sm:hidden">{movement.date}</td>
                <td className="px-4 py-2 wrap-anywhere">
                  <p className="text-soft sm:hidden">{movement.date}</p>
                  {movement.service === null
                    ? KINDS[movement.kind]
                    : `${movement.calls.toLocaleString('en')} × ${movement.service}`}
                  {movement.reason !== null && <p className="text-soft">{movement.reason}</p>}
                </td>
                <td className="figures px-4 py-2 text-right">
                  {movement.amount_micro_usdc > 0 && '+'}
                  {alignedMicroUsd(movement.amount_micro_usdc)}
                </td>
                <td className="figures px-4 py-2 text-right max-sm:hidden">
                  {alignedMicroUsd(movement.balance_micro_usdc)}
                </td>
              </tr>
            ))}
            {movements.length === 0 && (
              <tr>
                <td colSpan={4} className="px-4 py-6 text-soft">
                  No money moved in this month.
                </td>
              </tr>
            )}
          </tbody>
        </table>
      </Card>
    </>
  );
}
