import type { Caller } from '#gateway';
import type { Nonces } from './nonces.ts';
import { signInError } from './sign-in-error.ts';

const HOW = 'get one from GET /api/v1/auth/nonce, sign a message with it, and send that once';

/**
 * Guards sensitive requests. A wallet must have signed in for this request, with an unused nonce of this gateway. The
 * nonce is used up. Callers with an API key pass. The session cookie of a wallet or key does not pass, because a thief
 * of the cookie has neither the wallet nor the key. Rejects with GatewayError `unauthorized`.
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
