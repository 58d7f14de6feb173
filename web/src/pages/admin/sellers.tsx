import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type SyntheticEvent, type ReactNode } from 'react';
import { Link } from 'wouter';
import { withKey } from '../../api/operator.ts';
import { api, call, data, type Schemas } from '../../api/client.ts';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Empty } from '../../ui/empty.tsx';
import { ErrorNote } from '../../ui/error-note.tsx';
import { Field } from '../../ui/field.tsx';
import { Money } from '../../ui/money.tsx';
import { QueryView } from '../../ui/query-view.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { useToast } from '../../ui/toast.tsx';
import { useAdminKey } from './admin-key.tsx';
import { sellerPage } from './paths.ts';

/** A provider that connects to this gateway, did so once, or is banned. */
type Seller = Schemas['ProviderState'];

/** Of these facts, the forms need no more. */
type ActedSeller = Pick<Seller, 'provider' | 'name' | 'banned' | 'earnings_micro_usdc' | 'earnings_usd'>;

type Act = 'pay' | 'ban' | 'unban';

const PAGE = 50;
const KEY = ['admin', 'sellers'];
const nameOf = ({ name, provider }: ActedSeller) => name ?? provider;

/** The list of connected, former and banned providers, with forms to ban them and to book what they were paid. */
export function Sellers(): ReactNode {
  const [offset, setOffset] = useState(0);
  const sellers = useQuery({
    queryKey: [...KEY, offset],
    queryFn: () => data(api.GET('/admin/v1/providers', { params: { query: { limit: PAGE, offset } } })),
    placeholderData: keepPreviousData,
  });
  const columns: readonly Column<Seller>[] = [
    {
      id: 'seller',
      head: 'Provider',
      cell: (row) => (
        <>
          <Link href={sellerPage(row.provider)} className="font-medium hover:underline">
            {row.name ?? 'Never registered'}
          </Link>
          <p className="font-mono text-xs break-all text-soft">{row.provider}</p>
          {row.banned !== null && <p className="text-sm text-soft">Banned: {row.banned.reason}</p>}
        </>
      ),
    },
    {
      id: 'state',
      head: 'State',
      from: 'sm',
      cell: (row) =>
        row.banned !== null ? (
          <Badge tone="bad">banned</Badge>
        ) : (
          <Badge tone={row.connected ? 'good' : 'warn'}>{row.connected ? 'connected' : 'away'}</Badge>
        ),
    },
    { id: 'earnings', head: 'To be paid', align: 'right', cell: (row) => <Money micro={row.earnings_micro_usdc} /> },
    {
      id: 'acts',
      head: <span className="sr-only">Changes</span>,
      align: 'right',
      cell: (row) => <SellerActs seller={row} />,
    },
  ];
  return (
    <>
      <Card title="Connected and former providers" flush>
        <QueryView query={sellers}>
          {(rows) => (
            <Table
              caption="Connected and former providers"
              columns={columns}
              rows={rows}
              rowKey={({ provider }) => provider}
              empty={
                <Empty
                  title="No provider has connected yet"
                  text="tunnel.providers in the file of this gateway says who may."
                />
              }
            />
          )}
        </QueryView>
      </Card>
      <div className="flex justify-center gap-2">
        {offset > 0 && <Button onClick={() => setOffset(Math.max(0, offset - PAGE))}>Previous providers</Button>}
        {sellers.data?.length === PAGE && <Button onClick={() => setOffset(offset + PAGE)}>More providers</Button>}
      </div>
    </>
  );
}

/** The buttons that book a payout to a provider and ban it, with their forms. */
export function SellerActs({ seller }: { readonly seller: ActedSeller }): ReactNode {
  const [act, setAct] = useState<Act | null>(null);
  const close = () => setAct(null);
  const ban = seller.banned === null ? 'ban' : 'unban';
  return (
    <span className="flex flex-wrap justify-end gap-2">
      {seller.earnings_micro_usdc > 0 && (
        <Button size="small" aria-label={`Book a payout to ${nameOf(seller)}`} onClick={() => setAct('pay')}>
          Book <span className="max-sm:hidden">a payout</span>
        </Button>
      )}
      <Button
        size="small"
        aria-label={`${ban === 'ban' ? 'Ban' : 'Unban'} ${nameOf(seller)}`}
        onClick={() => setAct(ban)}
      >
        {ban === 'ban' ? 'Ban' : 'Unban'}
      </Button>
      <Dialog title={act === null ? '' : TITLES[act]} open={act !== null} onClose={close}>
        {act === 'pay' && <PayoutForm seller={seller} onDone={close} />}
        {(act === 'ban' || act === 'unban') && <BanForm seller={seller} onDone={close} />}
      </Dialog>
    </span>
  );
}

const TITLES: Readonly<Record<Act, string>> = {
  pay: 'Book a payout',
  ban: 'Ban a provider',
  unban: 'Let a provider in again',
};

function PayoutForm({ seller, onDone }: { readonly seller: ActedSeller; readonly onDone: () => void }): ReactNode {
  const [usd, setUsd] = useState(seller.earnings_usd);
  const [reference, setReference] = useState('');
  const askKey = useAdminKey();
  const toast = useToast();
  const queries = useQueryClient();
  const pay = useMutation({
    mutationFn: async () => {
      const key = await askKey(`Book ${usd.trim()} USD as paid to ${nameOf(seller)}.`);
      if (key === null) return null;
      return call(
        api.POST('/admin/v1/providers/{id}/payouts', {
          params: { path: { id: seller.provider } },
          body: { amount_usd: usd.trim(), reference: reference.trim() },
          headers: withKey(key),
        }),
      );
    },
    onSuccess: async (answer) => {
      if (answer === null) return;
      await queries.invalidateQueries({ queryKey: KEY });
      toast(answer.data.duplicate ? 'This reference was booked before: nothing was changed.' : 'Booked.');
      onDone();
    },
  });
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    pay.mutate();
  };
  return (
    <form onSubmit={submit} className="grid gap-4">
      <p className="text-soft">
        For earnings that you paid to {nameOf(seller)} outside of this gateway, for example by bank transfer. No money
        is sent.
      </p>
      <Field
        label="USD"
        hint={`${seller.earnings_usd} USD are to be paid.`}
        inputMode="decimal"
        required
        pattern="[0-9]+([.][0-9]{1,6})?"
        title="A number such as 25 or 2.50"
        value={usd}
        onChange={({ target }) => setUsd(target.value)}
      />
      <Field
        label="Reference"
        hint="Your name of the payment, such as that of the bank transfer. It counts once, and the provider sees it."
        required
        maxLength={128}
        value={reference}
        onChange={({ target }) => setReference(target.value)}
      />
      {pay.error !== null && <ErrorNote error={pay.error} />}
      <Button type="submit" tone="primary" busy={pay.isPending} className="justify-self-end">
        Book the payout
      </Button>
    </form>
  );
}

function BanForm({ seller, onDone }: { readonly seller: ActedSeller; readonly onDone: () => void }): ReactNode {
  const [reason, setReason] = useState('');
  const askKey = useAdminKey();
  const queries = useQueryClient();
  const isBanned = seller.banned !== null;
  const act = useMutation({
    mutationFn: async () => {
      const key = await askKey(isBanned ? `Let ${nameOf(seller)} in again.` : `Ban ${nameOf(seller)}.`);
      if (key === null) return null;
      const asked = { params: { path: { id: seller.provider } }, headers: withKey(key) };
      return isBanned
        ? call(api.DELETE('/admin/v1/providers/{id}/ban', asked))
        : call(api.POST('/admin/v1/providers/{id}/ban', { ...asked, body: { reason: reason.trim() } }));
    },
    onSuccess: async (answer) => {
      if (answer === null) return;
      await Promise.all([KEY, ['providers']].map((queryKey) => queries.invalidateQueries({ queryKey })));
      onDone();
    },
  });
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    act.mutate();
  };
  return (
    <form onSubmit={submit} className="grid gap-4">
      {isBanned ? (
        <p className="text-soft">
          {nameOf(seller)} may connect again, if this gateway admits it. Its proxy must be started again.
        </p>
      ) : (
        <>
          <p className="text-soft">
            The services of {nameOf(seller)} are gone at once, and it cannot connect again. Its running calls have 30
            seconds to end, and are paid. Its earnings of {seller.earnings_usd} USD stay on its account.
          </p>
          <Field
            label="Reason"
            hint="The provider is told."
            required
            maxLength={300}
            value={reason}
            onChange={({ target }) => setReason(target.value)}
          />
        </>
      )}
      {act.error !== null && <ErrorNote error={act.error} />}
      <Button type="submit" tone={isBanned ? 'primary' : 'danger'} busy={act.isPending} className="justify-self-end">
        {isBanned ? 'Let it in' : 'Ban the provider'}
      </Button>
    </form>
  );
}
