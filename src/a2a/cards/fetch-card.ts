import { createHash } from 'node:crypto';
import { GatewayError, jsonText } from '#wire';
import type { Offer } from '#gateway';
import { readContent, type CardContent } from './card-content.ts';
import { membersOfValue } from './card-text.ts';
import { readCard, type CardFacts } from './read-card.ts';

export interface CardReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Uint8Array;
}

/**
 * GETs a path below an offer's endpoint with CARD_REQUEST_HEADERS. Follows no redirect, reads no more of the body
 * than CARD_BYTES_MAX and one byte, and gives up when `signal` aborts.
 */
export type FetchCard = (offer: Offer, path: string, signal: AbortSignal) => Promise<CardReply>;

/** Asked for in the newest version: its card lists the interfaces of all versions. */
export const CARD_REQUEST_HEADERS = { accept: 'application/json', 'a2a-version': '1.0' } as const;
export const CARD_BYTES_MAX = 256 * 1024;
const LIMITS = { jsonDepthMax: 32, jsonKeysMax: 10_000, jsonElementsMax: 20_000 };

const WELL_KNOWN = ['/.well-known/agent-card.json', '/.well-known/agent.json'];

/** An agent's card as it was read. */
export interface KnownCard {
  readonly content: CardContent;
  readonly facts: CardFacts;
  /** Of all that is kept of the card: another one is another card. */
  readonly hash: string;
  /** About what keeping it takes. */
  readonly bytes: number;
}

/** No readable card was found. `message` gives the reason for each address. */
export class CardUnavailable extends Error {
  override readonly name = 'CardUnavailable';
}

/**
 * The card of an agent: at the path that its provider named, else at either well-known one. Throws CardUnavailable;
 * what `fetch` throws ends the search, as the next address is at the same host.
 */
export async function fetchCard(fetch: FetchCard, offer: Offer, signal: AbortSignal): Promise<KnownCard> {
  const faults: string[] = [];
  for (const path of new Set([...(offer.agent ? [offer.agent.cardPath] : []), ...WELL_KNOWN])) {
    const reply = await fetch(offer, path, signal);
    const read = readReply(reply, basePathOf(offer));
    if (typeof read !== 'string') return read;
    faults.push(`${path} ${read}`);
  }
  throw new CardUnavailable(`The agent shows no card: ${faults.join('; ')}`);
}

/** Reads the reply of an agent: a card, or the reason why it is not one. */
function readReply({ status, body }: CardReply, basePath: string | null): KnownCard | string {
  if (status !== 200) return `answers ${status}`;
  if (body.byteLength > CARD_BYTES_MAX) return `is larger than ${CARD_BYTES_MAX} bytes`;
  let card: unknown;
  try {
    card = JSON.parse(jsonText(body, LIMITS));
  } catch (error) {
    if (error instanceof GatewayError || error instanceof SyntaxError) return 'is no JSON that is read here';
    throw error;
  }
  const content = readContent(card);
  if (typeof membersOfValue(card)['name'] !== 'string') return 'is no agent card: it has no name';
  const facts = readCard(card, basePath);
  const kept = JSON.stringify([content, facts]);
  return { content, facts, hash: createHash('sha256').update(kept).digest('base64url'), bytes: kept.length * 2 };
}

/** The path of an endpoint; null behind a tunnel, where only the provider's proxy knows it. */
function basePathOf({ endpoint }: Offer): string | null {
  return endpoint.kind === 'direct' ? new URL(endpoint.baseUrl).pathname : null;
}
