import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, useState, type SyntheticEvent, type ReactNode } from 'react';
import { shortAccount } from '../../../account/account-name.tsx';
import { useProof } from '../../../account/proof.tsx';
import { type Chain, useBalance, useBoundWallets } from '../../../api/own.ts';
import { isTooMuch } from '../../../api/api-error.ts';
import { api, call } from '../../../api/client.ts';
import type { Session } from '../../../api/session.ts';
import { newId } from '../../../app/new-id.ts';
import { Button } from '../../../ui/button.tsx';
import { ErrorNote } from '../../../ui/error-note.tsx';
import { Field, Select } from '../../../ui/field.tsx';
import { formatHeld } from '../../../ui/money.tsx';
import { formatMicroUsd, formatUsd, MICRO } from '../../../ui/usd.ts';
import { faultsOf } from '../keys/new-key.tsx';
import { networkName } from './networks.ts';

const familyOf = (network: string) => network.split(':')[0];

const isWallet = ({ account }: Session) => /^(?:eip155|solana):/.test(account);

interface Props {
  readonly chains: readonly Chain[];
  readonly session: Session;
  readonly onDone: () => void;
}

/** A form for a withdrawal to a wallet of the account. */
export function WithdrawForm({ chains, session, onDone }: Props): ReactNode {
  const own = isWallet(session)
    ? chains.filter(({ network }) => familyOf(network) === familyOf(session.account))
    : chains;
  if (own.length > 0) return <Form chains={own} session={session} onDone={onDone} />;
  return (
    <p className="text-soft">
      The account is a wallet, and this gateway has no chain on which that wallet can be paid. It pays on{' '}
      {chains.map(({ network }) => networkName(network)).join(', ')}.
    </p>
  );
}

/** `chains` are those on which the account can be paid, at least one. */
function Form({ chains, session, onDone }: Props): ReactNode {
  const ofWallet = isWallet(session);
  const bound = useBoundWallets(!ofWallet).data ?? [];
  const [network, setNetwork] = useState(chains[0]!.network);
  const [source, setSource] = useState<'balance' | 'earnings'>('balance');
  const [usd, setUsd] = useState('');
  const [address, setAddress] = useState('');
  // The idempotency key: the form makes one withdrawal, even if it is sent again.
  const once = useRef(newId());
  const available = useBalance().data?.balance_micro_usdc;
  const chain = chains.find((one) => one.network === network)!;
  const fee = chain.withdrawal_fee_micro_usdc;
  const received = Math.max(0, Number(usd) - fee / MICRO);
  const accountFee = chain.token_account_fee_micro_usdc;
  const receivers = bound.filter(({ wallet }) => familyOf(wallet) === familyOf(network));
  const receiver = ofWallet ? session.account.split(':').at(-1)! : address || (receivers[0]?.address ?? '');
  const prove = useProof();
  const queries = useQueryClient();
  const withdraw = useMutation({
    mutationFn: async () => {
      const gets = fee === 0 ? '' : `, which gets ${formatUsd(received)} after the fee`;
      const less = accountFee === 0 ? '' : `, less ${formatMicroUsd(accountFee)} if it has no account for USDC yet`;
      const headers = await prove(`Withdraw ${formatUsd(Number(usd))} to ${shortAccount(receiver)}${gets}${less}.`);
      if (headers === null) return null;
      const body = { network, amount_usd: usd.trim(), source, ...(ofWallet ? {} : { address: receiver }) };
      return call(api.POST('/api/v1/withdrawals', { body, headers: { ...headers, 'idempotency-key': once.current } }));
    },
    onSuccess: async (answer) => {
      if (answer === null) return;
      await queries.invalidateQueries({ queryKey: ['withdrawals'] });
      await queries.invalidateQueries({ queryKey: ['balance'] });
      onDone();
    },
  });
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    withdraw.mutate();
  };
  if (!ofWallet && receivers.length === 0)
    return (
      <p className="text-soft">
        This account has no wallet on {networkName(network)} to be paid to. Bind one in the section “Wallets” below. You
        can withdraw to it after its waiting time.
      </p>
    );
  const faults = faultsOf(withdraw.error);
  const amountFault = faults['amount_usd'] ?? null;
  return (
    <form onSubmit={submit} className="grid gap-4">
      <div className="grid items-start gap-4 sm:grid-cols-2">
        <Select
          label="Network"
          options={chains.map((one) => ({ value: one.network, text: networkName(one.network) }))}
          value={network}
          onChange={({ target }) => setNetwork(target.value)}
        />
        <Select
          label="From"
          options={[
            { value: 'balance', text: 'Balance' },
            { value: 'earnings', text: 'Earnings' },
          ]}
          value={source}
          onChange={({ target }) => setSource(target.value as 'balance' | 'earnings')}
        />
      </div>
      <Field
        label="USDC"
        hint={`${source === 'balance' && available !== undefined ? `${formatHeld(available)} are available. ` : ''}At least ${formatMicroUsd(chain.withdrawal_min_micro_usdc)}. What the operator credited cannot be withdrawn.`}
        inputMode="decimal"
        required
        value={usd}
        error={amountFault}
        onChange={({ target }) => setUsd(target.value)}
      />
      {fee > 0 && (
        <p className="text-sm text-soft">
          {formatMicroUsd(fee)} of it is the fee of a withdrawal
          {received > 0 ? `: the wallet gets ${formatUsd(received)}` : ''}.
        </p>
      )}
      {accountFee > 0 && (
        <p className="text-sm text-soft">
          A wallet that has no account for USDC yet gets {formatMicroUsd(accountFee)} less: one is opened for it.
        </p>
      )}
      {ofWallet ? (
        <p className="text-sm text-soft">
          It is paid to the wallet of your account: <span className="font-mono break-all">{receiver}</span>
        </p>
      ) : (
        <Select
          label="To"
          options={receivers.map((one) => ({ value: one.address, text: one.address }))}
          value={receiver}
          onChange={({ target }) => setAddress(target.value)}
        />
      )}
      {withdraw.error !== null && amountFault === null && (
        <ErrorNote error={withdraw.error} help={isTooMuch(withdraw.error) ? 'Withdraw what is there.' : undefined} />
      )}
      <Button type="submit" tone="primary" busy={withdraw.isPending} className="justify-self-end">
        Withdraw
      </Button>
    </form>
  );
}
