import { createHash } from 'node:crypto';
import { GatewayError } from '#errors';
import { BOUNDS, parseForeign } from '#wire';
import { type Offer, pinned } from '#catalog';
import { endOnly, runFree, type Pipeline, type Send } from '#call';
import { OWN_ACCOUNT } from '#accounts';
import { readContent, type CardContent, membersOfValue } from './card-content.ts';
import { readCard, type CardFacts } from './read-card.ts';

export interface CardReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Uint8Array;
}

/**
 * GETs a path below an offer's endpoint with CARD_REQUEST_HEADERS. Follows no redirect, reads at most one byte more
 * than CARD_BYTES_MAX, and stops when `signal` aborts.
 */
export type FetchCard = (offer: Offer, path: string, signal: AbortSignal) => Promise<CardReply>;

/** Requests the newest version, whose card lists the interfaces of all versions. */
export const CARD_REQUEST_HEADERS = { accept: 'application/json', 'a2a-version': '1.0' } as const;
export const CARD_BYTES_MAX = BOUNDS.card.bytesMax;

const WELL_KNOWN = ['/.well-known/agent-card.json', '/.well-known/agent.json'];

export interface KnownCard {
  readonly content: CardContent;
  readonly facts: CardFacts;
  /** The hash of the stored content of the card. */
  readonly hash: string;
  /** Approximate memory of the card in bytes. */
  readonly bytes: number;
}

/** Thrown if no readable card was found. `message` gives the reason for each path. */
export class CardUnavailable extends Error {
  override readonly name = 'CardUnavailable';
}

/**
 * Fetches the card of an agent from the path that its provider registered, else from one of the two well-known paths.
 * Throws CardUnavailable. An error of `fetch` ends the search, because all paths are on the same host.
 */
export async function fetchCard(fetch: FetchCard, offer: Offer, signal: AbortSignal): Promise<KnownCard> {
  const faults: string[] = [];
  for (const path of new Set([...(offer.agent ? [offer.agent.cardPath] : []), ...WELL_KNOWN])) {
    const reply = await fetch(offer, path, signal);
    const read = readReply(reply, basePathOf(offer));
    if (typeof read !== 'string') return read;
    faults.push(`${path} ${read}`);
  }
  throw new CardUnavailable(`The agent card could not be fetched: ${faults.join('; ')}`);
}

/** Reads the reply of an agent. Returns the card, or the reason why the reply is no card. */
function readReply({ status, body }: CardReply, basePath: string | null): KnownCard | string {
  if (status !== 200) return `answers ${status}`;
  if (body.byteLength > CARD_BYTES_MAX) return `is larger than ${CARD_BYTES_MAX} bytes`;
  let card: unknown;
  try {
    card = parseForeign(body, BOUNDS.card);
  } catch (error) {
    if (error instanceof GatewayError || error instanceof SyntaxError) return 'is not JSON that this gateway can read';
    throw error;
  }
  const content = readContent(card);
  if (typeof membersOfValue(card)['name'] !== 'string') return 'is not an agent card, because it has no name';
  const facts = readCard(card, basePath);
  const text = JSON.stringify([content, facts]);
  return { content, facts, hash: createHash('sha256').update(text).digest('base64url'), bytes: text.length * 2 };
}

/** The path of an endpoint; null behind a tunnel, where only the provider's proxy knows it. */
function basePathOf({ endpoint }: Offer): string | null {
  return endpoint.kind === 'direct' ? new URL(endpoint.baseUrl).pathname : null;
}

const FREE = { usage: null, outcome: 'free', estimated: false, finishReason: null, flags: [], result: null } as const;

/**
 * Fetches the cards of agents through their registered endpoints, directly or over a tunnel. The requests are calls of
 * the gateway's own account.
 */
export function createAskForCard(pipeline: Pick<Pipeline, 'prepare' | 'run'>): FetchCard {
  return async (offer, path, signal) => {
    let card: CardReply | null = null;
    await runFree(
      pipeline,
      {
        primitive: 'agent',
        caller: { account: OWN_ACCOUNT, key: null, wallet: null },
        requestId: 'own-agent-card',
        target: pinned(offer.id),
        method: 'agent/getCard',
        timeoutMs: CARD_MS,
        startAttempt: (_offer, send) =>
          endOnly(async () => {
            card = await getCard(path, send);
            return FREE;
          }),
      },
      signal,
    );
    if (card === null) throw new Error('the agent was not reached');
    return card;
  };
}

async function getCard(path: string, send: Send): Promise<CardReply> {
  const reply = await send({ method: 'GET', path, headers: CARD_REQUEST_HEADERS, body: null }).head;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  while (bytes <= CARD_BYTES_MAX) {
    const arrived = await reply.read();
    if (arrived === null) break;
    for (const chunk of arrived) bytes += chunk.byteLength;
    chunks.push(...arrived);
  }
  return { status: reply.status, headers: reply.headers, body: Buffer.concat(chunks) };
}

const CARD_MS = 15_000;
