import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '#errors';
import { after, dropOldest, orElse } from '#wire';
import type { Caller } from '#accounts';
import type { Attempts } from '../attempts.ts';
import { bearerOf } from '../credential.ts';
import type { KeyCallers } from '../key-callers.ts';
import { tokenError } from './access-tokens.ts';
import { type CheckDpopProof, proofError } from './dpop-proof.ts';
import { askedOf, pathOf, type Resources, writtenPathOf } from './resources.ts';

/** An access token of the gateway's own authorization server. It never changes. */
export interface OwnToken {
  /** Hash of the API key that the grant is. Without the key, the token is nothing. */
  readonly key: string;
  /** The resource that it is for (RFC 8707). */
  readonly resource: string;
  /** Thumbprint of the key that it is bound to (RFC 9449). null for a bearer token. */
  readonly jkt: string | null;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

export interface OwnTokensOptions {
  readonly find: (text: string) => Promise<OwnToken | null>;
  readonly resources: Pick<Resources, 'isFor' | 'agentsOf'>;
  readonly checkProof: CheckDpopProof;
  readonly attempts: Attempts;
  readonly now: () => number;
}

/**
 * The callers of the gateway's own access tokens. A token is looked up once and then known until its end; what may end
 * earlier is its key, which is looked up like every key.
 */
export interface OwnTokens {
  /**
   * The caller of the token in the Authorization header. null if the header has none. Throws or rejects with
   * GatewayError `unauthorized` for an unknown token, one for another resource, or one without the proof that it needs;
   * `rate_limit_exceeded` after too many failures from the address.
   */
  callerOf(headers: IncomingHttpHeaders, address: string, keys: KeyCallers): Caller | Promise<Caller> | null;
}

/** 256 random bits in base64url, as the library makes them. */
const FORM = /^[\w-]{43}$/;
const KNOWN_MAX = 20_000;
const DPOP = /^dpop /i;

export function createOwnTokens({ find, resources, checkProof, attempts, now }: OwnTokensOptions): OwnTokens {
  const known = new Map<string, OwnToken>();

  const lookUp = (text: string, address: string): Promise<OwnToken> =>
    attempts.check(address, async () => {
      const token = await find(text);
      if (token === null) throw invalidToken();
      dropOldest(known, KNOWN_MAX - 1);
      known.set(text, token);
      return token;
    });

  const prove = async (headers: IncomingHttpHeaders, text: string, jkt: string): Promise<void> => {
    const { dpop: proof } = headers;
    const requested = askedOf(headers);
    if (typeof proof !== 'string' || requested === undefined) throw proofError('is missing, and this token needs one');
    await checkProof(proof, { method: requested.method, path: writtenPathOf(requested), token: text, jkt });
  };

  return {
    callerOf(headers, address, keys) {
      const { authorization = '' } = headers;
      const proven = DPOP.test(authorization);
      const text = proven ? authorization.slice('dpop '.length).trim() : bearerOf(authorization);
      if (text === undefined || !FORM.test(text)) {
        if (proven) throw invalidToken();
        return null;
      }
      return after<OwnToken, Caller>(known.get(text) ?? lookUp(text, address), (token) => {
        if (token.expiresAt <= now()) {
          known.delete(text);
          throw tokenError('has expired');
        }
        // A thief of a bound token would send it as a bearer token.
        if (proven !== (token.jkt !== null))
          throw tokenError(proven ? 'is a bearer token, not one of DPoP' : 'is bound to a key, and needs DPoP');
        const requested = askedOf(headers);
        if (!resources.isFor(token.resource, requested === undefined ? null : pathOf(requested)))
          throw tokenError(`is only for ${token.resource}: ask for a token for this address`);
        const callerOf = () => ofAgents(callerOfKey(keys, token.key), resources.agentsOf([token.resource]));
        return token.jkt === null ? callerOf() : prove(headers, text, token.jkt).then(callerOf);
      });
    },
  };
}

const invalidToken = () => tokenError('is unknown, has expired or was revoked');

const ofAgents = (known: Caller | Promise<Caller>, agents: readonly string[] | null): Caller | Promise<Caller> =>
  agents === null ? known : after(known, (caller) => ({ ...caller, agents }));

/** A token whose key is gone is an invalid token, and its client may ask for another one. */
const callerOfKey = (keys: KeyCallers, hash: string): Caller | Promise<Caller> =>
  orElse(() => keys.callerOfHash(hash), endedWithKey);

function endedWithKey(error: unknown): never {
  throw error instanceof GatewayError && error.code === 'unauthorized' ? invalidToken() : error;
}
