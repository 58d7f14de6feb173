import { dropOldest } from '#wire';
import { GatewayError } from '#errors';
import type { Caller } from '#accounts';
import type { KeyCallers } from './key-callers.ts';
import { type KeyStore, PLAYGROUND } from './key-store.ts';

const REMEMBERED_MAX = 20_000;

interface Spender {
  readonly account: string;
  readonly member: string;
  readonly kind: 'live' | 'development';
}

/**
 * The keys with which browsers of members call for an account: one for each member, made at the first call, whose text
 * nobody has. So limits, lists, approvals and figures of keys hold for such calls too.
 */
interface PlaygroundKeys {
  /**
   * Rejects with GatewayError `permission_denied` if the key is disabled or has ended, `unprocessable` if the account
   * has too many keys, and with the errors of KeyCallers.
   */
  callerOf(spender: Spender): Promise<Caller>;
}

interface PlaygroundKeysOptions {
  readonly keys: Pick<KeyStore, 'create' | 'findOfClient'>;
  readonly callers: Pick<KeyCallers, 'callerOfHash'>;
  readonly now: () => number;
}

export function createPlaygroundKeys({ keys, callers, now }: PlaygroundKeysOptions): PlaygroundKeys {
  const hashes = new Map<string, Promise<string>>();

  const find = async ({ account, member, kind }: Spender): Promise<string> => {
    const known = () => keys.findOfClient(account, member, PLAYGROUND, kind);
    const fresh = { account, label: 'Playground', kind, member, client: PLAYGROUND, single: true };
    // Another gateway may make it meanwhile. Each of two keys would have idempotency keys of its own.
    const record = (await known()) ?? (await keys.create(fresh))?.record ?? (await known());
    if (record === null)
      throw new GatewayError('unprocessable', 'This account has too many keys for one more: delete unused keys');
    const { disabled, expiresAt, hash } = record;
    if (!disabled && (expiresAt === null || expiresAt > now())) return hash;
    throw new GatewayError(
      'permission_denied',
      `Your key of the playground in this account ${disabled ? 'is disabled' : 'has ended'}: somebody who may change keys there can ${disabled ? 'enable' : 'delete'} it`,
    );
  };

  /** Several calls at once make one key. */
  const hashOf = (name: string, spender: Spender): Promise<string> => {
    const known = hashes.get(name);
    if (known !== undefined) return known;
    const finding = find(spender);
    dropOldest(hashes, REMEMBERED_MAX - 1);
    hashes.set(name, finding);
    finding.catch(() => hashes.delete(name));
    return finding;
  };

  return {
    async callerOf(spender) {
      const name = JSON.stringify([spender.account, spender.member, spender.kind]);
      const hash = await hashOf(name, spender);
      try {
        return await callers.callerOfHash(hash);
      } catch (error) {
        if (!(error instanceof GatewayError) || error.code !== 'unauthorized') throw error;
        // It was deleted, disabled, or has ended since.
        hashes.delete(name);
        return callers.callerOfHash(await hashOf(name, spender));
      }
    },
  };
}
