import { createSealedTexts } from '#wire';

/** Whose call a run token is for. */
export interface RunGrant {
  /** Id of the running call. */
  readonly parent: string;
  readonly account: string;
  /** Hash of the API key that it was made with; null for a wallet's or a token's. */
  readonly key: string | null;
}

/**
 * Credentials that the gateway gives to an agent with a call: who presents one may call in the consumer's name,
 * paid from that call's lock alone, while it is held. Nothing is stored: the text is sealed, so that the agent does
 * not learn from it whose name that is.
 */
export interface RunTokens {
  issue(grant: RunGrant, expiresAt: number): string;
  /** null for what is none of ours, was changed, or is over. */
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
