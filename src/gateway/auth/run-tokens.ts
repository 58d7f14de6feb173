import { createHmac, timingSafeEqual } from 'node:crypto';

/** Whose call a run token is for. */
export interface RunGrant {
  /** Id of the running call. */
  readonly parent: string;
  readonly account: string;
  /** Hash of the API key that it was made with; null for a wallet's or a token's. */
  readonly key: string | null;
}

/**
 * Credentials that the gateway gives to an agent with a call: who presents one may call in the consumer's name, paid from that call's lock alone, while
 * it is held. Nothing is stored: the text is sealed.
 */
export interface RunTokens {
  issue(grant: RunGrant, expiresAt: number): string;
  /** null for what is none of ours, was changed, or is over. */
  open(text: string): RunGrant | null;
}

export const RUN_TOKEN_PREFIX = 'svc-run-v1-';
const TEXT_MAX = 1_024;

export function createRunTokens({ secret, now }: { readonly secret: Buffer; readonly now: () => number }): RunTokens {
  const tagOf = (payload: string) => createHmac('sha256', secret).update(payload).digest();
  return {
    issue({ parent, account, key }, expiresAt) {
      const payload = Buffer.from(JSON.stringify([expiresAt, parent, account, key])).toString('base64url');
      return `${RUN_TOKEN_PREFIX}${payload}.${tagOf(payload).toString('base64url')}`;
    },
    open(text) {
      if (!text.startsWith(RUN_TOKEN_PREFIX) || text.length > TEXT_MAX) return null;
      const dot = text.indexOf('.', RUN_TOKEN_PREFIX.length);
      if (dot === -1) return null;
      const payload = text.slice(RUN_TOKEN_PREFIX.length, dot);
      const tag = Buffer.from(text.slice(dot + 1), 'base64url');
      const right = tagOf(payload);
      if (tag.length !== right.length || !timingSafeEqual(tag, right)) return null;
      const [expiresAt, parent, account, key] = JSON.parse(Buffer.from(payload, 'base64url').toString()) as [number, string, string, string | null];
      return expiresAt > now() ? { parent, account, key } : null;
    },
  };
}
