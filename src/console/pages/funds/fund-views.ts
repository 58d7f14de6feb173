import { FEES, formatUsd } from '#billing';
import { CANCELED, type Deposit, type Withdrawal } from '#chains';
import { toCaip10 } from '#accounts/names';
import { DOCUMENTED } from '#http';

export const text = (description: string) => ({ type: 'string', description }) as const;
export const maybe = (description: string) => ({ type: ['string', 'null'], description }) as const;
const time = { type: 'string', description: 'RFC 3339' } as const;
const micro = (description: string) => ({ type: 'integer', description: `Micro-USD. ${description}` }) as const;

const depositProperties = {
  id: text('What makes it one payment, or the network and the event of a plain transfer'),
  status: {
    type: 'string',
    enum: ['pending', 'credited', 'final', 'failed', 'reversed'],
    description:
      '`pending`: not known yet. `credited`: in the balance, but its chain may still undo it. `final`: its chain can no longer undo it. `failed`: it did not arrive. `reversed`: its chain undid it',
  },
  network: text('CAIP-2'),
  account: maybe('CAIP-10 of the account that it is credited to; null in suspense'),
  payer: text('Sending address'),
  amount_micro_usdc: micro('The promised amount; for a plain transfer, the amount that arrived'),
  credited_micro_usdc: { type: ['integer', 'null'], description: 'Micro-USD that arrived; null until they were seen' },
  credited_usd: maybe('The same as a decimal'),
  transaction: maybe('Its id on the chain'),
  reason: maybe('Why it failed or was reversed'),
  created_at: time,
  updated_at: time,
} as const;
export const depositSchema = {
  title: 'Deposit',
  type: 'object',
  required: Object.keys(depositProperties),
  properties: depositProperties,
} as const;

const DEPOSIT_STATUS = {
  received: 'pending',
  crediting: 'pending',
  credited: 'credited',
  final: 'final',
  failed: 'failed',
  reversing: 'reversed',
  reversed: 'reversed',
} as const satisfies Record<Deposit['state'], string>;

export function viewDeposit({
  id,
  state,
  network,
  account,
  payer,
  amount,
  credited,
  transaction,
  reason,
  createdAt,
  updatedAt,
}: Deposit) {
  return {
    id,
    status: DEPOSIT_STATUS[state],
    network,
    account: account === null ? null : toCaip10(account, [network]),
    payer,
    amount_micro_usdc: Number(amount),
    credited_micro_usdc: credited === null ? null : Number(credited),
    credited_usd: credited === null ? null : formatUsd(credited),
    transaction,
    reason,
    created_at: iso(createdAt),
    updated_at: iso(updatedAt),
  };
}

const withdrawalProperties = {
  id: text('Of the withdrawal'),
  status: {
    type: 'string',
    enum: ['pending', 'processing', 'paid', 'canceled', 'returned', 'refused'],
    description:
      '`pending`: taken from its source and not signed, so that it can be canceled. `processing`: signed, and perhaps on the chain. `paid`: final there. `canceled`, `returned`: given back. `refused`: nothing was taken',
  },
  network: text('CAIP-2'),
  address: text('Who is paid'),
  source: { type: 'string', enum: ['balance', 'earnings', 'fees', 'treasury'], description: 'What it is taken from' },
  amount_micro_usdc: micro('What is taken from its source'),
  amount_usd: text('The same as a decimal'),
  fee_micro_usdc: micro(
    'Fee of the operator; from `processing` on, with the fee of a token account that is opened for it',
  ),
  fee_usd: text('The same as a decimal'),
  pays_micro_usdc: micro('What the address is paid: the amount less the fee'),
  submit: { type: 'string', enum: ['gateway', 'self'], description: 'Who submits it to the chain' },
  authorization: {
    type: ['object', 'null'],
    additionalProperties: true,
    description:
      'With `submit: self`, once it is signed: the EIP-3009 authorization (from, to, value, validAfter, validBefore, nonce, signature) for transferWithAuthorization of the asset. It pays once, whoever submits it',
  },
  transaction: maybe('Its id on the chain'),
  reason: maybe('Why it was given back or refused'),
  created_at: time,
  updated_at: time,
} as const;
export const withdrawalSchema = {
  title: 'Withdrawal',
  type: 'object',
  required: Object.keys(withdrawalProperties),
  properties: withdrawalProperties,
} as const;

export function viewWithdrawal(withdrawal: Withdrawal) {
  const { id, network, address, source, amount, fee, handedOut, signed, transaction, reason, createdAt, updatedAt } =
    withdrawal;
  return {
    id,
    status: statusOf(withdrawal),
    network,
    address,
    source: source.startsWith('escrow:')
      ? 'balance'
      : source.startsWith('earnings:')
        ? 'earnings'
        : source === FEES
          ? 'fees'
          : 'treasury',
    amount_micro_usdc: Number(amount),
    amount_usd: formatUsd(amount),
    fee_micro_usdc: Number(fee),
    fee_usd: formatUsd(fee),
    pays_micro_usdc: Number(amount - fee),
    submit: handedOut ? 'self' : 'gateway',
    authorization: handedOut && signed !== null ? (JSON.parse(signed.text) as Readonly<Record<string, unknown>>) : null,
    transaction,
    reason,
    created_at: iso(createdAt),
    updated_at: iso(updatedAt),
  };
}

function statusOf({ state, reason }: Withdrawal): string {
  switch (state) {
    case 'requested':
    case 'debited':
    case 'queued':
      return 'pending';
    case 'signed':
      return 'processing';
    case 'returning':
    case 'returned':
      return reason === CANCELED ? 'canceled' : 'returned';
    case 'paid':
    case 'refused':
      return state;
  }
}

export const iso = (milliseconds: number): string => new Date(milliseconds).toISOString();

/* Networks and addresses in requests. The code names what is wrong with one; the reference has its form. */

const BASE58 = '[1-9A-HJ-NP-Za-km-z]';

export const networkField = (description?: string) => ({
  type: 'string',
  maxLength: 64,
  ...(description === undefined ? {} : { description }),
  [DOCUMENTED]: { pattern: `^(?:eip155:[0-9]{1,32}|solana:${BASE58}{32})$` },
});

export const addressField = (description?: string) => ({
  type: 'string',
  maxLength: 64,
  ...(description === undefined ? {} : { description }),
  [DOCUMENTED]: { pattern: `^(?:0x[0-9a-fA-F]{40}|${BASE58}{32,44})$` },
});
