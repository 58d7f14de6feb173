import { createHash } from 'node:crypto';
import type { A2aVersion } from '../wire/version.ts';
import type { AgentCard } from './agent-card.ts';
import { signCard, type SignBytes } from './sign-card.ts';
import { withLegacyMembers } from './with-legacy-members.ts';

/** A card in bytes, with the tag by which a client asks whether it has changed (strong: of the bytes). */
export interface CardPage {
  readonly body: Buffer;
  readonly etag: string;
  /** When this gateway first wrote it, epoch milliseconds; null where it is written anew for each request. */
  readonly modifiedAt: number | null;
}

/** The address that cards are for. */
export interface CardOrigin {
  /** Without a slash at its end. */
  readonly url: string;
  /**
   * The operator named this address, so cards for it are signed. A request with another Host gets a card without
   * signature.
   */
  readonly known: boolean;
}

interface CardPages {
  /**
   * The page of the card that `make` makes, or the one that was made of the same `content` for the same version and
   * address.
   */
  page(content: string, version: A2aVersion, origin: CardOrigin, make: () => AgentCard): CardPage;
}

interface CardPagesOptions {
  /** null: cards are not signed. */
  readonly sign: SignBytes | null;
  readonly bytesMax?: number;
  /** Epoch milliseconds; default the clock. */
  readonly date?: () => number;
}

/** Writes, signs and keeps cards. The least recently requested go first. */
export function createCardPages({ sign, bytesMax = 16 * 1024 * 1024, date = Date.now }: CardPagesOptions): CardPages {
  const pages = new Map<string, CardPage>();
  let bytes = 0;
  const sizeOf = (key: string, { body }: CardPage) => key.length * 2 + body.byteLength;

  function write(card: AgentCard, version: A2aVersion, { url, known }: CardOrigin): CardPage {
    const shown = version === '1.0' ? card : withLegacyMembers(card);
    // Verifiers that know only 1.0 look at its members alone, others at all members.
    const signed = sign && known ? signCard(shown, sign, url, shown === card ? [] : [card]) : shown;
    const body = Buffer.from(JSON.stringify(signed));
    return {
      body,
      etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`,
      modifiedAt: known ? date() : null,
    };
  }

  return {
    page(content, version, origin, make) {
      // A stranger's names would push out the pages that others ask for.
      if (!origin.known) return write(make(), version, origin);
      const key = JSON.stringify([version, origin.url, content]);
      const page = pages.get(key) ?? write(make(), version, origin);
      if (pages.delete(key)) bytes -= sizeOf(key, page);
      pages.set(key, page);
      bytes += sizeOf(key, page);
      for (const [oldest, old] of pages) {
        if (bytes <= bytesMax || oldest === key) break;
        pages.delete(oldest);
        bytes -= sizeOf(oldest, old);
      }
      return page;
    },
  };
}
