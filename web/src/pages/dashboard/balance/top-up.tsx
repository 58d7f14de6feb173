import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type SyntheticEvent, type ReactNode } from 'react';
import { actsFor } from '../../../api/acting.ts';
import type { Chain } from '../../../api/own.ts';
import { Button } from '../../../ui/button.tsx';
import { Card } from '../../../ui/card.tsx';
import { Dialog } from '../../../ui/dialog.tsx';
import { ErrorNote } from '../../../ui/error-note.tsx';
import { Field, Select } from '../../../ui/field.tsx';
import { formatMicroUsd, formatUsd } from '../../../ui/usd.ts';
import { topUp } from '../../../wallet/pay-in.ts';
import { useWallets } from '../../../wallet/use-wallets.ts';
import type { FoundWallet } from '../../../wallet/wallet.ts';
import { WalletList } from '../../../wallet/wallet-list.tsx';
import { networkName } from './networks.ts';

const AMOUNTS = ['5', '20', '50'];

/** A form that pays in with a wallet of this browser. `chains` are the chains that it can use, at least one. */
export function TopUp({ chains }: { readonly chains: readonly Chain[] }): ReactNode {
  const [network, setNetwork] = useState(chains[0]!.network);
  const [usd, setUsd] = useState('5');
  const [choosing, setChoosing] = useState(false);
  const chain = chains.find((one) => one.network === network) ?? chains[0]!;
  const fault = faultOf(usd, chain);
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    if (fault === null) setChoosing(true);
  };
  return (
    <Card title="Add money from a wallet">
      <form onSubmit={submit} className="grid gap-4">
        <p className="text-soft">
          The wallet signs one payment of USDC, and the gateway sends it. You pay no network fee. The money is there in
          seconds.
        </p>
        <div className="grid gap-4 sm:grid-cols-2">
          <Select
            label="Network"
            options={chains.map((one) => ({ value: one.network, text: networkName(one.network) }))}
            value={network}
            onChange={({ target }) => setNetwork(target.value)}
          />
          <Field
            label="USDC"
            inputMode="decimal"
            value={usd}
            error={fault}
            onChange={({ target }) => setUsd(target.value)}
          />
        </div>
        <div className="flex flex-wrap items-center gap-2">
          {AMOUNTS.map((amount) => (
            <Button key={amount} size="small" onClick={() => setUsd(amount)} aria-pressed={usd === amount}>
              ${amount}
            </Button>
          ))}
          <Button type="submit" tone="primary" className="ml-auto">
            Pay {fault === null ? formatUsd(Number(usd)) : ''}
          </Button>
        </div>
        {!chain.answers && (
          <p className="text-sm text-warn">The gateway cannot reach this network now. A payment may take longer.</p>
        )}
      </form>
      <Dialog title={`Pay ${formatUsd(Number(usd))} in USDC`} open={choosing} onClose={() => setChoosing(false)}>
        <Pay network={network} usd={usd} onPaid={() => setChoosing(false)} />
      </Dialog>
    </Card>
  );
}

function faultOf(usd: string, chain: Chain): string | null {
  const micro = Number(usd) * 1_000_000;
  if (usd.trim() === '' || Number.isNaN(micro) || micro <= 0) return 'A number of USD, such as 5 or 0.50.';
  if (micro < chain.min_topup_micro_usdc) return `At least ${formatMicroUsd(chain.min_topup_micro_usdc)} at once.`;
  if (micro > chain.topup_max_micro_usdc) return `At most ${formatMicroUsd(chain.topup_max_micro_usdc)} at once.`;
  return null;
}

function Pay({
  network,
  usd,
  onPaid,
}: {
  readonly network: string;
  readonly usd: string;
  readonly onPaid: () => void;
}): ReactNode {
  const wallets = useWallets(network.startsWith('solana:') ? 'solana' : 'eip155');
  const queries = useQueryClient();
  const pay = useMutation({
    mutationFn: async (wallet: FoundWallet) => topUp(await wallet.connect(), network, usd),
    onSuccess: async () => {
      await Promise.all([
        queries.invalidateQueries({ queryKey: ['balance'] }),
        queries.invalidateQueries({ queryKey: ['deposits'] }),
      ]);
      onPaid();
    },
  });
  return (
    <div className="grid gap-4">
      <p className="text-soft">
        Choose the wallet that pays on {networkName(network)}. It shows the amount and the receiver before it signs. The
        money goes to {actsFor() === null ? 'the account that you are signed in to' : 'the organisation'}.
      </p>
      {pay.error !== null && <ErrorNote error={pay.error} />}
      <WalletList
        wallets={wallets}
        busy={pay.isPending ? (pay.variables?.id ?? '') : null}
        onChoose={(wallet) => pay.mutate(wallet)}
      />
    </div>
  );
}
