import { createSealedTexts } from '#wire';

/** The call that a run token is for. */
interface RunGrant {
  /** Id of the running call. */
  readonly parent: string;
  readonly account: string;
  /** Hash of the API key that the call was made with; null for a wallet or an access token. */
  readonly key: string | null;
}

/**
 * Credentials that the gateway gives to an agent with a call. With one, the agent makes calls in the consumer's name.
 * These calls are paid only from the lock of the agent's call, while the lock is held. Nothing is stored. The token is
 * encrypted, so that the agent does not learn the consumer's account from it.
 */
export interface RunTokens {
  issue(grant: RunGrant, expiresAt: number): string;
  /** null for a text that is not a token of this installation, was changed, or has expired. */
  open(text: string): RunGrant | null;
}

export const RUN_TOKEN_PREFIX = 'svc-run-v1-';
const TEXT_MAX = 1_024;
const PURPOSE = 'run token';

/** `secret`: 32 bytes that all gateways of one installation share. */
export function createRunTokens({ secret, now }: { readonly secret: Buffer; readonly now: () => number }): RunTokens {
  const texts = createSealedTexts(secret);
  return {
    issue: ({ parent, account, key }, expiresAt) =>
      RUN_TOKEN_PREFIX + texts.seal(PURPOSE, JSON.stringify([expiresAt, parent, account, key])),
    open(text) {
      if (!text.startsWith(RUN_TOKEN_PREFIX) || text.length > TEXT_MAX) return null;
      const opened = texts.open(PURPOSE, text.slice(RUN_TOKEN_PREFIX.length));
      if (opened === null) return null;
      const [expiresAt, parent, account, key] = JSON.parse(opened) as [number, string, string, string | null];
      return expiresAt > now() ? { parent, account, key } : null;
    },
  };
}
