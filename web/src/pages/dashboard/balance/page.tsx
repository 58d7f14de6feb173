import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { actsFor } from '../../../api/acting.ts';
import { mayAdminister, useOwnRole } from '../../../api/organisation.ts';
import { type Chain, useBalance, useChains, utcDay } from '../../../api/own.ts';
import { api, call } from '../../../api/client.ts';
import { Card, Figure } from '../../../ui/card.tsx';
import { Copy } from '../../../ui/copy.tsx';
import { Empty } from '../../../ui/empty.tsx';
import { Money } from '../../../ui/money.tsx';
import { QueryView } from '../../../ui/query-view.tsx';
import { Skeleton } from '../../../ui/skeleton.tsx';
import { Frame } from '../frame.tsx';
import { DepositAddresses } from './deposit-addresses.tsx';
import { Deposits } from './deposits.tsx';
import { Movements } from './movements.tsx';
import { TopUp } from './top-up.tsx';
import { Wallets } from './wallets.tsx';
import { Withdrawals } from './withdrawals.tsx';

export default function BalancePage(): ReactNode {
  const chains = useChains();
  return (
    <Frame
      title="Balance"
      lead={
        chains.data?.length === 0
          ? 'Calls are paid from here.'
          : 'Calls are paid from here. Add money over a chain, and take out what is left.'
      }
    >
      {(session) => (
        <div className="grid gap-5">
          <Amounts />
          {session.rights !== 'limited' && <OwnEarnings />}
          <QueryView query={chains} loading={<Skeleton className="h-72 w-full rounded-xl" />}>
            {(known) =>
              known.length === 0 ? (
                <Card>
                  <Empty
                    heading="h2"
                    title="The operator adds the money"
                    text={
                      session.signed_in_by === 'development' ? (
                        <>
                          This development gateway has no chain. Its local account has play money: npm start gave it
                          some, and <code className="font-mono text-sm">tollgate account credit</code> adds more.
                        </>
                      ) : (
                        'This gateway takes no payments over chains. Ask its operator to add money, or to pay back what you do not use. They need the id of your account:'
                      )
                    }
                    {...(session.signed_in_by === 'development'
                      ? {}
                      : {
                          action: (
                            <span className="flex items-center gap-1 font-mono text-sm break-all">
                              {actsFor() ?? session.account}
                              <Copy text={actsFor() ?? session.account} label="Copy the id of the account" />
                            </span>
                          ),
                        })}
                  />
                </Card>
              ) : (
                <>
                  <div className="grid items-start gap-5 xl:grid-cols-2">
                    <PayIn chains={known} />
                    <DepositAddresses chains={known} session={session} />
                  </div>
                  <Deposits />
                  {session.rights === 'full' && (
                    <>
                      <Withdrawals chains={known} session={session} />
                      <Wallets session={session} />
                    </>
                  )}
                </>
              )
            }
          </QueryView>
          {session.rights !== 'limited' && <Movements />}
        </div>
      )}
    </Frame>
  );
}

function PayIn({ chains }: { readonly chains: readonly Chain[] }): ReactNode {
  const role = useOwnRole();
  if (mayAdminister(role)) return <TopUp chains={chains} />;
  return (
    <Card title="Add money from a wallet">
      <p className="text-soft">
        An admin or owner of the organisation pays in.{role !== null && ` Your role is ${role}.`}
      </p>
    </Card>
  );
}

function Amounts(): ReactNode {
  const balance = useBalance().data;
  const waiting = <Skeleton className="my-1.5 h-6 w-24" />;
  return (
    <Card>
      <dl className="grid grid-cols-2 gap-6 sm:grid-cols-3">
        <Figure
          name="Available"
          value={balance ? <Money micro={balance.balance_micro_usdc} held /> : waiting}
          note="for new calls"
        />
        <Figure
          name="Locked"
          value={balance ? <Money micro={balance.locked_micro_usdc} /> : waiting}
          note="by calls that are not over"
        />
      </dl>
    </Card>
  );
}

/** Earnings of a provider, which are not part of the balance. Nothing for an account that never earned. */
function OwnEarnings(): ReactNode {
  const today = utcDay(0);
  const earnings = useQuery({
    queryKey: ['earnings', today],
    queryFn: () => call(api.GET('/api/v1/provider/earnings', { params: { query: { start_date: today } } })),
  }).data;
  if (earnings === undefined || earnings.total_earned_micro_usdc === 0) return null;
  return (
    <Card title="Earned as a provider">
      <p className="max-w-[65ch] text-soft">
        <Money micro={earnings.available_micro_usdc} /> are to be paid to you. {earnings.payout_terms.summary}{' '}
        <Link href="/dashboard/provider" className="underline">
          All earnings
        </Link>
      </p>
    </Card>
  );
}
