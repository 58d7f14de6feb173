import { createHash } from 'node:crypto';
import type { A2aVersion } from '../wire/protocol.ts';
import type { AgentCard } from './agent-card.ts';
import { signCard, type SignBytes } from './sign-card.ts';
import { withLegacyMembers } from './with-legacy-members.ts';

/** A card as bytes, with its strong ETag. */
export interface CardPage {
  readonly body: Buffer;
  readonly etag: string;
  /** When this gateway first wrote the card, in epoch milliseconds; null if it is written for each request. */
  readonly modifiedAt: number | null;
}

/** The origin that cards name. */
export interface CardOrigin {
  /** The URL without a trailing slash. */
  readonly url: string;
  /**
   * The operator named this origin, so cards for it are signed. A request with another Host gets a card without a
   * signature.
   */
  readonly known: boolean;
}

interface CardPages {
  /**
   * The cached page for the same `content`, version and origin. Without one, writes the page of the card from `make`.
   */
  page(content: string, version: A2aVersion, origin: CardOrigin, make: () => AgentCard): CardPage;
}

interface CardPagesOptions {
  /** null: cards are not signed. */
  readonly sign: SignBytes | null;
  readonly bytesMax?: number;
  /** Epoch milliseconds. Default: the system clock. */
  readonly date?: () => number;
}

/** Writes, signs and caches cards. The cache drops the least recently requested cards first. */
export function createCardPages({ sign, bytesMax = 16 * 1024 * 1024, date = Date.now }: CardPagesOptions): CardPages {
  const pages = new Map<string, CardPage>();
  let bytes = 0;
  const sizeOf = (key: string, { body }: CardPage) => key.length * 2 + body.byteLength;

  function write(card: AgentCard, version: A2aVersion, { url, known }: CardOrigin): CardPage {
    const shown = version === '1.0' ? card : withLegacyMembers(card);
    // The card gets two signatures. Verifiers that know only 1.0 check only the members of 1.0; others check all
    // members.
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
      // Pages for unknown Hosts are not cached. Otherwise strangers could fill the cache with invented Hosts.
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
