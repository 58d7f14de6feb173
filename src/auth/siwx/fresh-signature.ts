import type { Caller } from '#gateway';
import type { Nonces } from './nonces.ts';
import { signInError } from './sign-in-error.ts';

const HOW = 'get one from GET /api/v1/auth/nonce, sign a message with it, and send that once';

/**
 * For sensitive requests: a wallet must have signed in for this very request, with a nonce that this gateway issued
 * and nobody has used. The nonce is used up. Rejects with GatewayError `unauthorized` otherwise. Callers with an
 * API key pass. The cookie of a session proves nothing here: whoever stole it has no wallet and no key.
 */
export async function requireFreshSignature({ wallet, session }: Caller, nonces: Pick<Nonces, 'use'>): Promise<void> {
  if (session?.by === 'api_key')
    throw signInError('A session is not enough for this: send the API key itself, as "Authorization: Bearer svc-sk-…"');
  if (wallet === null) return;
  if (wallet.nonce === null) throw signInError(`This needs a sign-in with a nonce of this gateway: ${HOW}`);
  if (!(await nonces.use(wallet.nonce)))
    throw signInError(
      `The nonce of this sign-in was used before, is older than 10 minutes or is not of this gateway: ${HOW}`,
    );
}
