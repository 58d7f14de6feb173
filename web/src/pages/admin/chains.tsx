import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { ApiError } from '../../api/api-error.ts';
import { type AnswerOf, api, data } from '../../api/client.ts';
import { Badge } from '../../ui/badge.tsx';
import { Card, Figure } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty.tsx';
import { Money } from '../../ui/money.tsx';
import { formatNumber } from '../../ui/number.ts';
import { QueryView } from '../../ui/query-view.tsx';
import { Time } from '../../ui/time.tsx';
import { networkName } from '../dashboard/balance/networks.ts';
import { Fees } from './fees.tsx';
import { Suspense } from './suspense.tsx';

type Books = AnswerOf<'showTheBooksOfTheChains'>['data'];
type Book = Books['chains'][number];

/** The books of the chains. null if the gateway has no chains. */
async function findBooks(): Promise<Books | null> {
  try {
    return await data(api.GET('/admin/v1/payments'));
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

/** The treasuries, and their balances by the books. */
export default function Chains(): ReactNode {
  const books = useQuery({ queryKey: ['admin', 'payments'], queryFn: findBooks, refetchInterval: 30_000 });
  return (
    <QueryView query={books}>
      {(found) =>
        found === null ? (
          <Card>
            <Empty
              heading="h2"
              title="No chain"
              text="This gateway takes and pays no money over chains. Add a [[chains]] block to its configuration to take USDC."
            />
          </Card>
        ) : (
          <div className="grid gap-5">
            <Card>
              <dl className="grid grid-cols-2 gap-6 sm:grid-cols-3">
                <Figure name="Fees" value={<Money micro={found.fees_micro_usdc} />} note="yours to withdraw" />
                <Figure
                  name="In suspense"
                  value={<Money micro={found.suspense_micro_usdc} />}
                  note="came in, and is nobody’s yet"
                />
                <Figure name="Losses" value={<Money micro={found.losses_micro_usdc} />} note="not made good yet" />
              </dl>
            </Card>
            {found.chains.map((book) => (
              <Treasury key={book.network} book={book} />
            ))}
            <Suspense />
            <Fees networks={found.chains.map(({ network }) => network)} />
          </div>
        )
      }
    </QueryView>
  );
}

function Treasury({ book }: { readonly book: Book }): ReactNode {
  const { held_micro_usdc: held, booked_micro_usdc: booked } = book;
  const open = [
    ['deposits on their way', book.deposits],
    ['credited, not final', book.unfinal],
    ['withdrawals on their way', book.withdrawals],
  ] as const;
  return (
    <Card
      title={networkName(book.network)}
      action={
        <span className="flex gap-2">
          <Badge tone={book.answers ? 'good' : 'bad'}>{book.answers ? 'Answers' : 'Does not answer'}</Badge>
          {book.halted !== null && <Badge tone="bad">Halted</Badge>}
        </span>
      }
    >
      {book.halted !== null && <p className="mb-4 rounded-lg bg-bad-wash px-4 py-3 text-bad">{book.halted}</p>}
      <dl className="grid grid-cols-2 gap-6 md:grid-cols-3">
        <Figure name="Held on the chain" value={held === null ? '–' : <Money micro={held} />} />
        <Figure
          name="By the books"
          value={booked === null ? '–' : <Money micro={booked} />}
          note={
            held !== null && booked !== null && held < booked
              ? 'The treasury holds less than the books say.'
              : undefined
          }
        />
        <div>
          <dt className="text-sm text-soft">Compared</dt>
          <dd className="mt-1.5">{book.compared_at === null ? 'not yet' : <Time at={book.compared_at} />}</dd>
        </div>
      </dl>
      <p className="mt-5 text-sm text-soft">
        Treasury <span className="font-mono break-all">{book.treasury ?? 'not reached yet'}</span>
      </p>
      <ul className="mt-1 text-sm text-soft">
        {open.map(([what, { count, oldest }]) => (
          <li key={what}>
            {formatNumber(count)} {what}
            {oldest === null ? '' : ', the oldest '}
            {oldest !== null && <Time at={oldest} />}
          </li>
        ))}
      </ul>
    </Card>
  );
}
