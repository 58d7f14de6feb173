import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { useProof } from '../../../account/proof.tsx';
import { type BoundWallet, useBoundWallets } from '../../../api/own.ts';
import { api, call } from '../../../api/client.ts';
import type { Session } from '../../../api/session.ts';
import { Button } from '../../../ui/button.tsx';
import { Card } from '../../../ui/card.tsx';
import { Dialog } from '../../../ui/dialog.tsx';
import { Empty } from '../../../ui/empty.tsx';
import { ErrorNote } from '../../../ui/error-note.tsx';
import { QueryView } from '../../../ui/query-view.tsx';
import { Skeleton } from '../../../ui/skeleton.tsx';
import { Table, type Column } from '../../../ui/table.tsx';
import { Time } from '../../../ui/time.tsx';
import { signSignIn } from '../../../wallet/sign-in-message.ts';
import { useWallets } from '../../../wallet/use-wallets.ts';
import type { FoundWallet } from '../../../wallet/wallet.ts';
import { WalletList } from '../../../wallet/wallet-list.tsx';

/** The wallets that are bound to an account which isn't itself a wallet. */
export function Wallets({ session }: { readonly session: Session }): ReactNode {
  const ofWallet = /^(?:eip155|solana):/.test(session.account);
  const bound = useBoundWallets(!ofWallet);
  const [binding, setBinding] = useState(false);
  const prove = useProof();
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: async ({ wallet }: BoundWallet) => {
      const headers = await prove(`Remove the wallet ${wallet}.`);
      return headers === null
        ? null
        : call(api.DELETE('/api/v1/wallets/{id}', { params: { path: { id: wallet } }, headers }));
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: ['wallets'] }),
  });
  // The account is itself a wallet.
  if (ofWallet) return null;
  const columns: readonly Column<BoundWallet>[] = [
    { id: 'wallet', head: 'Wallet', cell: (row) => <span className="font-mono text-sm break-all">{row.address}</span> },
    { id: 'bound', head: 'Bound', from: 'sm', cell: (row) => <Time at={row.bound_at} /> },
    {
      id: 'paid',
      head: 'Can be paid',
      from: 'md',
      cell: (row) => (Date.parse(row.paid_from) <= Date.now() ? 'now' : <Time at={row.paid_from} />),
    },
    {
      id: 'remove',
      head: <span className="sr-only">Remove</span>,
      align: 'right',
      cell: (row) => (
        <Button size="small" aria-label={`Remove ${row.address}`} onClick={() => remove.mutate(row)}>
          Remove
        </Button>
      ),
    },
  ];
  return (
    <Card
      title="Wallets"
      flush
      action={
        <Button size="small" onClick={() => setBinding(true)}>
          Bind a wallet
        </Button>
      }
    >
      {remove.error !== null && (
        <div className="p-4">
          <ErrorNote error={remove.error} />
        </div>
      )}
      <QueryView
        query={bound}
        loading={
          <div className="p-5">
            <Skeleton className="h-24 w-full" />
          </div>
        }
      >
        {(rows) => (
          <Table
            caption="Wallets"
            columns={columns}
            rows={rows}
            rowKey={({ wallet }) => wallet}
            empty={
              <Empty
                title="No wallet is bound"
                text="What a bound wallet sends is credited to this account, and it can be paid out to."
              />
            }
          />
        )}
      </QueryView>
      <Dialog title="Bind a wallet" open={binding} onClose={() => setBinding(false)}>
        <Bind onDone={() => setBinding(false)} />
      </Dialog>
    </Card>
  );
}

function Bind({ onDone }: { readonly onDone: () => void }): ReactNode {
  const wallets = useWallets();
  const prove = useProof();
  const queries = useQueryClient();
  const bind = useMutation({
    mutationFn: async (found: FoundWallet) => {
      const wallet = await found.connect();
      const headers = await prove(`Bind the wallet ${wallet.address}.`);
      if (headers === null) return null;
      const sign_in = await signSignIn(wallet, 'Bind this wallet to my account.');
      return call(api.POST('/api/v1/wallets', { body: { sign_in }, headers }));
    },
    onSuccess: async (answer) => {
      if (answer === null) return;
      await queries.invalidateQueries({ queryKey: ['wallets'] });
      onDone();
    },
  });
  return (
    <div className="grid gap-4">
      <p className="text-soft">The wallet signs a short text that proves that it is yours. It moves no money.</p>
      {bind.error !== null && <ErrorNote error={bind.error} />}
      <WalletList
        wallets={wallets}
        busy={bind.isPending ? (bind.variables?.id ?? '') : null}
        onChoose={(wallet) => bind.mutate(wallet)}
      />
    </div>
  );
}
