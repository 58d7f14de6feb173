import { facts, type Paint } from './terminal.ts';

/** An account in the answers of the admin API. */
export interface Account {
  readonly id: string;
  readonly caip_account_id: string;
  readonly label: string;
  readonly created_at: string | null;
  readonly balance_micro_usdc: number;
  readonly locked_micro_usdc: number;
  readonly balance_usd: string;
  readonly state: 'open' | 'frozen' | 'closed';
  readonly state_reason: string;
  readonly state_since: string | null;
  readonly total_credits_micro_usdc?: number;
  readonly total_usage_micro_usdc?: number;
  readonly movements_micro_usdc?: Readonly<Record<Movement, number>>;
  readonly provider?: Seller | null;
}
interface Seller {
  readonly provider: string;
  readonly connected: boolean;
  readonly banned: boolean;
  readonly earnings_usd: string;
}
type Movement = 'credited' | 'debited' | 'deposited' | 'withdrawn' | 'paid_out' | 'written_off' | 'other';

/** An account as lines of names and values. */
export function describe(account: Account, paint: Paint): string {
  return facts(
    [
      ['account', account.caip_account_id],
      ['label', account.label || '-'],
      ['balance', `${account.balance_usd} USD`],
      ['locked', `${usd(account.locked_micro_usdc)} USD`],
      ['state', account.state_reason === '' ? account.state : `${account.state}: ${account.state_reason}`],
      ...sellerOf(account),
      ...movementsOf(account),
      ...(account.total_usage_micro_usdc === undefined
        ? []
        : [['used', `${usd(account.total_usage_micro_usdc)} USD`] as const]),
      ['created', account.created_at ?? 'by itself, as wallets and subjects of an issuer are'],
    ],
    paint,
  );
}

function sellerOf({ provider: seller = null }: Account): readonly (readonly [string, string])[] {
  if (seller === null) return [];
  const state = seller.banned ? 'banned' : seller.connected ? 'connected: its offers are on sale' : 'away';
  return [
    ['provider', `${seller.provider}, ${state}`],
    ['earnings', `${seller.earnings_usd} USD to be paid`],
  ];
}

const WORDS: readonly (readonly [Movement, string])[] = [
  ['credited', 'credited'],
  ['debited', 'debited'],
  ['deposited', 'deposited'],
  ['withdrawn', 'withdrawn'],
  ['paid_out', 'paid out'],
  ['written_off', 'written off'],
  ['other', 'other'],
];

/** Credits and debits always, other movements if there were any. An older gateway tells only their sum. */
function movementsOf(account: Account): readonly (readonly [string, string])[] {
  const { movements_micro_usdc: sums, total_credits_micro_usdc: net } = account;
  if (sums === undefined) return net === undefined ? [] : [['paid in', `${usd(net)} USD, less what was taken again`]];
  return WORDS.flatMap(([kind, word], index) =>
    index < 2 || sums[kind] !== 0 ? [[word, `${usd(sums[kind])} USD`] as const] : [],
  );
}

/** Micro-USD from an answer as USD, without trailing zeros. */
export function usd(micro: number): string {
  return (micro / 1e6).toFixed(6).replace(/\.?0+$/, '');
}
