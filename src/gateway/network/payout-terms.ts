import { isWallet } from '#accounts/names';

/** Whether and how a gateway pays a provider's earnings. The provider sees this before it sells. */
interface PayoutTerms {
  /** CAIP-2 ids of the chains over which the provider can withdraw its earnings. */
  readonly networks: readonly string[];
  /** The operator's own words about payouts; null without any. */
  readonly text: string | null;
  /** All of it in one sentence or two. */
  readonly summary: string;
}

/** The chains over which a gateway pays (CAIP-2 ids), and what its operator says about payouts. */
export type PayoutRules = Pick<PayoutTerms, 'networks' | 'text'>;

/**
 * The terms for a provider. A wallet is paid on chains of its own family, and any other account on every chain, to a
 * wallet that it binds. `networks` are the chains with a treasury.
 */
export function payoutTerms(
  account: string,
  { networks, text }: PayoutRules = { networks: [], text: null },
): PayoutTerms {
  const family = account.slice(0, account.indexOf(':') + 1);
  const own = isWallet(account) ? networks.filter((network) => network.startsWith(family)) : networks;
  return { networks: own, text, summary: summaryOf(own, text, isWallet(account)) };
}

function summaryOf(networks: readonly string[], text: string | null, isOfWallet: boolean): string {
  const ofOperator = text === null ? '' : `The operator says about payouts: ${text}`;
  if (networks.length > 0) {
    const to = isOfWallet ? 'to this wallet' : 'to a wallet that you bind to this account';
    return `You can withdraw your earnings at any time over ${networks.join(', ')}, ${to}. ${ofOperator}`.trimEnd();
  }
  const chain = isOfWallet
    ? "This gateway pays over no chain of this wallet's kind."
    : 'This gateway pays over no chain.';
  return text === null
    ? `${chain} Its operator pays earnings by hand, and has not said when or how: agree on it before you sell.`
    : `${chain} ${ofOperator}`;
}
