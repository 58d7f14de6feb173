import { useState, type ReactNode } from 'react';
import { actsFor } from '../../../api/acting.ts';
import type { Chain } from '../../../api/own.ts';
import type { Session } from '../../../api/session.ts';
import { Card } from '../../../ui/card.tsx';
import { Choice } from '../../../ui/choice.tsx';
import { Copy } from '../../../ui/copy.tsx';
import { networkName } from './networks.ts';
import { QrCode } from './qr-code.tsx';

/** The addresses for plain transfers. */
export function DepositAddresses({
  chains,
  session,
}: {
  readonly chains: readonly Chain[];
  readonly session: Session;
}): ReactNode {
  const [network, setNetwork] = useState(chains[0]!.network);
  const { treasury, asset } = chains.find((one) => one.network === network) ?? chains[0]!;
  const ofWallet =
    actsFor() === null && (session.account.startsWith('eip155:') || session.account.startsWith('solana:'));
  return (
    <Card title="Or send USDC yourself">
      {chains.length > 1 && (
        <div className="mb-4">
          <Choice
            label="Network"
            options={chains.map((one) => ({ value: one.network, text: networkName(one.network) }))}
            chosen={network}
            onChoose={setNetwork}
          />
        </div>
      )}
      {treasury === null ? (
        <p className="text-soft">The gateway has not reached this network yet. Look again in a minute.</p>
      ) : (
        <div className="flex flex-wrap gap-5">
          <QrCode text={treasury} label={`QR code of the address on ${networkName(network)}`} />
          <div className="min-w-0 grow basis-64">
            <p className="text-sm text-soft">Address on {networkName(network)}</p>
            <p className="flex items-start gap-1 font-mono text-sm break-all">
              <span className="py-1.5">{treasury}</span>
              <Copy text={treasury} label="Copy the address" />
            </p>
            <p className="mt-2 text-sm text-soft">USDC, whose contract is</p>
            <p className="font-mono text-sm break-all">{asset}</p>
          </div>
        </div>
      )}
      <p className="mt-4 rounded-lg bg-warn-wash px-4 py-3 text-sm text-warn">
        {ofWallet
          ? 'Send only USDC, on this network, from the wallet of this account. What comes from another wallet is not credited to you.'
          : 'Send only USDC, on this network, from a wallet that is bound to this account below. Bind it before you send: what comes from a wallet that nobody bound waits until somebody claims it.'}
      </p>
    </Card>
  );
}
