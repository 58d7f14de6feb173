import { endOnly, pinned, OWN_ACCOUNT, runFree, type Pipeline, type Send } from '#gateway';
import { CARD_BYTES_MAX, CARD_REQUEST_HEADERS, type CardReply, type FetchCard } from './fetch-card.ts';

const FREE = { usage: null, outcome: 'free', estimated: false, finishReason: null, flags: [], tail: null } as const;

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
