import { createSealedTexts } from '#wire';
import type { TaskOwner } from '#tasks';

/** The subject of one of the gateway's own webhooks. An agent can notify it of nothing else. */
export interface OwnAddress extends TaskOwner {
  /** The offer whose agent was given it. */
  readonly offerId: string;
  readonly service: string;
  /** null for one that was given with the message that begins the task. */
  readonly taskId: string | null;
}

/** The gateway's own webhooks at agents. They are not stored: the address holds its subject, sealed. */
export interface OwnAddresses {
  /** The URL to give to an agent; null where the gateway does not know its own. */
  urlFor(address: OwnAddress): string | null;
  /** Opens the path of a notification; null for one that is not ours, or too old. */
  open(sealed: string): OwnAddress | null;
}

interface OwnAddressesOptions {
  /** 32 bytes that all gateways of one database share. */
  readonly secret: Uint8Array;
  /** Origin that the world reaches this gateway at, without a slash at its end; null where that is not known. */
  readonly publicUrl: string | null;
  readonly now: () => number;
}

/** Names of services cannot have `~`, so that none is hidden behind this path. */
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
