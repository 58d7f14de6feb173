import { createSealedTexts } from '#wire';
import type { TaskOwner } from '#tasks';

/** The subject of one of the gateway's own webhooks. Through it an agent can notify the gateway of nothing else. */
export interface OwnAddress extends TaskOwner {
  /** The offer whose agent got the webhook. */
  readonly offerId: string;
  readonly service: string;
  /** null if the webhook was sent with the message that begins the task. */
  readonly taskId: string | null;
}

/** The gateway's own webhooks for agents. They are not stored: each URL contains its subject, sealed. */
export interface OwnAddresses {
  /** The URL for an agent; null if the gateway does not know its own address. */
  urlFor(address: OwnAddress): string | null;
  /** Opens the sealed part of a notification's path; null if the gateway did not make it, or if it has expired. */
  open(sealed: string): OwnAddress | null;
}

interface OwnAddressesOptions {
  /** 32 bytes, shared by all gateways of one database. */
  readonly secret: Uint8Array;
  /** The public origin of this gateway, without a trailing slash; null if it is not known. */
  readonly publicUrl: string | null;
  readonly now: () => number;
}

/** Names of services cannot contain `~`, so this path hides no service. */
export const PUSH_PATH = '/a2a/~push/';

const TTL_MS = 60 * 24 * 3_600_000;
const SEALED_CHARS_MAX = 4_096;
const PURPOSE = 'a2a push';

export function createOwnAddresses({ secret, publicUrl, now }: OwnAddressesOptions): OwnAddresses {
  const texts = createSealedTexts(secret);
  return {
    urlFor({ offerId, service, taskId, account, within }) {
      if (publicUrl === null) return null;
      return (
        publicUrl +
        PUSH_PATH +
        texts.seal(PURPOSE, JSON.stringify([now() + TTL_MS, offerId, service, taskId, account, within]))
      );
    },
    open(sealed) {
      const text = sealed.length > SEALED_CHARS_MAX ? null : texts.open(PURPOSE, sealed);
      if (text === null) return null;
      const [until, offerId, service, taskId, account, within] = JSON.parse(text) as [
        number,
        string,
        string,
        string | null,
        string,
        string | null,
      ];
      return until > now() ? { offerId, service, taskId, account, within } : null;
    },
  };
}
