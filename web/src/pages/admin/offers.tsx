import { useMutation } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { api, data, type Schemas } from '../../api/client.ts';
import { withKey } from '../../api/operator.ts';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorNote } from '../../ui/error-note.tsx';
import { KIND_NAMES } from '../../ui/kinds.ts';
import { Money } from '../../ui/money.tsx';
import { formatNumber } from '../../ui/number.ts';
import { Price } from '../../ui/price.tsx';
import { Status } from '../../ui/status.tsx';
import type { Column } from '../../ui/table.tsx';
import { formatDuration, Time } from '../../ui/time.tsx';
import { useAdminKey } from './admin-key.tsx';
import { callPage, sellerPage } from './paths.ts';
import { Failed, isUnknown, MarginOf } from './sums.tsx';

/** An offer of a service as the operator sees it. */
export type Offer = Schemas['OperatorOffer'];

const NUMBERS: Readonly<Record<string, (offer: Offer) => number>> = {
  requests: ({ sums }) => sums.requests,
  failed: ({ sums }) => sums.failed,
  charged: ({ sums }) => sums.charged_micro_usdc,
};

const named: Column<Offer> = {
  id: 'service',
  head: 'Service',
  sort: ({ service }) => service,
  cell: (row) => (
    <>
      <span className="font-medium">{row.service}</span>
      <span className="block text-sm text-soft">
        {KIND_NAMES[row.primitive].one}
        {row.upstream_model !== null && row.upstream_model !== row.service && ` · ${row.upstream_model}`}
      </span>
      {row.pricing !== null && (
        <span className="block text-sm lg:hidden">
          <Price kind={row.primitive} pricing={row.pricing} />
        </span>
      )}
      {row.test_micro_usdc !== null && (
        <span className="mt-1 block sm:hidden">
          <TestButton offer={row} />
        </span>
      )}
    </>
  ),
};

const ofProvider: Column<Offer> = {
  id: 'provider',
  head: 'Provider',
  from: 'md',
  sort: ({ provider_name }) => provider_name,
  cell: ({ provider, provider_name: name }) =>
    provider === null ? (
      <span className="text-soft">Nobody served</span>
    ) : (
      <Link href={sellerPage(provider)} className="break-words hover:underline">
        {name ?? `${provider.slice(0, 8)}…`}
      </Link>
    ),
};

const figures: readonly Column<Offer>[] = [
  { id: 'state', head: 'State', cell: (row) => <OfferState offer={row} /> },
  {
    id: 'price',
    head: 'Price',
    align: 'right',
    from: 'lg',
    cell: (row) =>
      row.pricing === null ? (
        '–'
      ) : (
        <>
          <Price kind={row.primitive} pricing={row.pricing} />
          {row.price_since !== null && (
            <span className="block text-xs text-soft">
              since <Time at={row.price_since} />
            </span>
          )}
        </>
      ),
  },
  {
    id: 'requests',
    head: 'Served',
    align: 'right',
    from: 'lg',
    sort: NUMBERS['requests']!,
    cell: ({ sums }) => formatNumber(sums.requests),
  },
  {
    id: 'failed',
    head: 'Failed',
    align: 'right',
    from: 'xl',
    sort: NUMBERS['failed']!,
    cell: ({ sums }) => <Failed of={sums} />,
  },
  {
    id: 'charged',
    head: 'Charged',
    align: 'right',
    from: 'sm',
    sort: NUMBERS['charged']!,
    cell: ({ sums }) => <Money micro={sums.charged_micro_usdc} />,
  },
  {
    id: 'margin',
    head: 'Margin',
    align: 'right',
    sort: ({ sums }) => (isUnknown(sums) && sums.margin_micro_usd === 0 ? null : sums.margin_micro_usd),
    cell: (row) => (
      <span className="max-sm:text-sm">
        <MarginOf sums={row.sums} />
        {row.sums.cost_micro_usd > 0 && (
          <span className="block text-xs text-soft">
            cost <Money micro={row.sums.cost_micro_usd} />
          </span>
        )}
      </span>
    ),
  },
  {
    id: 'test',
    head: <span className="sr-only">Test</span>,
    align: 'right',
    from: 'sm',
    cell: (row) => row.test_micro_usdc !== null && <TestButton offer={row} />,
  },
];

/** The columns of a list of offers, and of those of one provider. */
export const OFFER_COLUMNS: readonly Column<Offer>[] = [named, ofProvider, ...figures];
export const OWN_OFFER_COLUMNS: readonly Column<Offer>[] = [named, ...figures];

export const offerKey = ({ primitive, service, provider }: Offer): string => `${primitive} ${service} ${provider}`;

/** The health of an offer: the state, since when, and why. */
function OfferState({ offer }: { readonly offer: Offer }): ReactNode {
  const { status, status_since: since, status_reason: reason, uptime_last_1h: uptime } = offer;
  if (status === null) return <Badge>{offer.provider === null ? 'nobody' : 'not offered'}</Badge>;
  return (
    <>
      <Status status={status} uptime={uptime} />
      {status === 'degraded' && <FailingFor accounts={offer.failing_accounts} />}
      {since !== null && (
        <span className="block text-xs text-soft">
          since <Time at={since} />
        </span>
      )}
      {reason !== null && (
        <span className="block max-w-[28ch] text-sm wrap-anywhere text-soft">
          {reason}
          {offer.status_call !== null && (
            <>
              {' '}
              <Link href={callPage('', offer.status_call)} className="link whitespace-nowrap">
                its call
              </Link>
            </>
          )}
        </span>
      )}
    </>
  );
}

/** For whom alone an offer fails, which the public pages do not show. */
function FailingFor({ accounts }: { readonly accounts: readonly string[] }): ReactNode {
  if (accounts.length === 0) return <span className="block text-sm text-soft">Its last call failed</span>;
  return (
    <span title={accounts.join(', ')} className="block text-sm">
      Failing for {formatNumber(accounts.length)} {accounts.length === 1 ? 'account' : 'accounts'}
    </span>
  );
}

/** Makes a small real call, after it has said what that costs at most. */
function TestButton({ offer }: { readonly offer: Offer }): ReactNode {
  const [open, setOpen] = useState(false);
  const close = () => setOpen(false);
  return (
    <>
      <Button size="small" aria-label={`Test ${offer.service}`} onClick={() => setOpen(true)}>
        Test
      </Button>
      <Dialog title="A test call" open={open} onClose={close}>
        {open && <TestCall offer={offer} />}
      </Dialog>
    </>
  );
}

function TestCall({ offer }: { readonly offer: Offer }): ReactNode {
  const askKey = useAdminKey();
  const test = useMutation({
    mutationFn: async () => {
      const key = await askKey(`Make a test call of ${offer.service}.`);
      if (key === null) return null;
      return data(
        api.POST('/admin/v1/services/test', {
          body: { service: offer.service, ...(offer.provider === null ? {} : { provider: offer.provider }) },
          headers: withKey(key),
        }),
      );
    },
  });
  const result = test.data ?? null;
  return (
    <div className="grid gap-4 text-left">
      <p className="text-soft">
        A short question to {offer.service} of {offer.provider_name}, as customers send it. It costs at most{' '}
        <Money micro={offer.test_micro_usdc ?? 0} />, from the account <code>tollgate:local:operator</code>.
      </p>
      {result !== null && (
        <div role="status" className="rounded-lg border border-line px-4 py-3">
          <p className="flex flex-wrap items-center gap-2">
            <Badge tone={result.ok ? 'good' : 'bad'}>{result.ok ? 'answered' : 'failed'}</Badge>
            <span className="text-sm text-soft">
              {formatDuration(result.duration_ms)}, <Money micro={result.cost_micro_usdc} />
            </span>
          </p>
          <p className="mt-2 break-words">{result.ok ? `“${result.answer}”` : result.error}</p>
          {result.call !== null && (
            <p className="mt-2 text-sm">
              <Link href={callPage('tollgate:local:operator', result.call)} className="link break-all">
                {result.call}
              </Link>
            </p>
          )}
        </div>
      )}
      {test.error !== null && <ErrorNote error={test.error} />}
      <Button tone="primary" busy={test.isPending} className="justify-self-end" onClick={() => test.mutate()}>
        {result === null ? 'Make the call' : 'Call again'}
      </Button>
    </div>
  );
}
