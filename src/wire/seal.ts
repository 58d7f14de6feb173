import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * Signed texts that a client stores for the gateway: `<payload>.<tag>`, both base64url. Each is bound to one account
 * and expires. The payload is not encrypted.
 */
export interface Seals {
  seal(account: string, payload: unknown): string;
  /** The payload that was sealed for this account; null if the text is of another account, expired or changed. */
  open(account: string, text: string): unknown;
}

interface SealsOptions {
  /** Shared by all gateways of one installation. */
  readonly secret: Buffer;
  readonly ttlMs: number;
  readonly now: () => number;
}

/** The most characters of a sealed text. A request carries no more. */
const TEXT_MAX = 1024 * 1024;

export function createSeals({ secret, ttlMs, now }: SealsOptions): Seals {
  const tagOf = (account: string, payload: string) =>
    createHmac('sha256', secret).update(`${account}\n${payload}`).digest();
  return {
    seal(account, value) {
      const payload = Buffer.from(JSON.stringify([now() + ttlMs, value])).toString('base64url');
      return `${payload}.${tagOf(account, payload).toString('base64url')}`;
    },
    open(account, text) {
      const dot = text.indexOf('.');
      if (dot === -1 || text.length > TEXT_MAX) return null;
      const payload = text.slice(0, dot);
      const tag = Buffer.from(text.slice(dot + 1), 'base64url');
      const right = tagOf(account, payload);
      if (tag.length !== right.length || !timingSafeEqual(tag, right)) return null;
      const [until, value] = JSON.parse(Buffer.from(payload, 'base64url').toString()) as [number, unknown];
      return until > now() ? value : null;
    },
  };
}
