import { parseEvmAddress, GatewayError } from '#wire';
import type { Wallets } from '#chains';
import { iso } from './fund-views.ts';
import { familyOf, ownWallet, shownAddress } from './own-wallet.ts';

interface AddressQuestion {
  readonly account: string;
  readonly network: string;
  /** The address as the caller wrote it. If it is undefined, the gateway chooses one. */
  readonly asked: string | undefined;
  readonly wallets: Pick<Wallets, 'list'>;
  readonly cooldownMs: number;
  readonly now: number;
}

/**
 * Returns the address to which an account's money may go on a network. For a wallet account this is the wallet itself.
 * For other accounts it is a wallet that was bound long enough ago. Rejects with GatewayError `invalid_request` or
 * `permission_denied`, which says what would be right.
 */
export async function withdrawalAddress({
  account,
  network,
  asked,
  wallets,
  cooldownMs,
  now,
}: AddressQuestion): Promise<string> {
  const family = familyOf(network);
  const wanted = asked === undefined ? null : family === 'solana' ? asked : parseEvmAddress(asked);
  if (asked !== undefined && wanted === null)
    throw refused('address must be an EVM address: 0x and 40 hex digits, in lower case or with their checksum');

  const own = ownWallet(account);
  if (own !== null) {
    const shown = shownAddress(own);
    if (own.family !== family || (own.network !== null && own.network !== network)) {
      const where = own.network ?? (own.family === 'eip155' ? 'EVM networks' : 'Solana');
      throw new GatewayError(
        'invalid_request',
        `The wallet of this account, ${shown}, is on ${where}. Withdraw there`,
        { param: 'network' },
      );
    }
    if (wanted !== null && wanted !== own.address)
      throw refused(`Withdrawals of this account always go to its own wallet, ${shown}. Omit address`);
    return shown;
  }

  const bound = (await wallets.list(account)).flatMap(({ wallet, boundAt }) => {
    const known = ownWallet(wallet);
    return known?.family === family ? [{ ...known, from: boundAt + cooldownMs }] : [];
  });
  const chosen =
    wanted === null ? (bound.length === 1 ? bound[0] : undefined) : bound.find(({ address }) => address === wanted);
  if (!chosen) {
    const names = bound.map(shownAddress).join(', ');
    if (bound.length > 0) throw refused(`address must be one of the wallets that are bound to this account: ${names}`);
    const kind = family === 'eip155' ? 'an EVM' : 'a Solana';
    throw refused(
      `This account has no wallet on ${network}. Bind ${kind} wallet to it first, with POST /api/v1/wallets`,
    );
  }
  if (chosen.from > now)
    throw new GatewayError(
      'permission_denied',
      `The wallet ${shownAddress(chosen)} was bound recently. Withdrawals to it are possible from ${iso(chosen.from)} on`,
      {
        param: 'address',
      },
    );
  return shownAddress(chosen);
}

const refused = (message: string) => new GatewayError('invalid_request', message, { param: 'address' });
