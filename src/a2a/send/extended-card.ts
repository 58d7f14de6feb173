import { endOnly, runFree, type Pipeline, type ReplyEnd, type Send } from '#call';
import { pinned, type Catalog } from '#catalog';
import { readAgent } from '../agent/agent-reply.ts';
import { agentRequest } from '../agent/agent-request.ts';
import type { A2aRequest } from '../protocol/parse-request.ts';
import type { ReplyWriter } from '../protocol/reply-writer.ts';
import type { Cards } from '../cards/cards.ts';
import { NO_ORIGIN } from '../cards/card-pages.ts';
import { type A2aResult, FREE, NO_RESULT, refusedEnd } from '../protocol/ending.ts';
import { chooseLink, resolveAgent } from '../agent/resolve.ts';
import { A2aError, translateError } from '../wire/errors.ts';
import { translateResult } from '../wire/translate.ts';
import type { A2aVersion } from '../wire/protocol.ts';

interface ExtendedCardDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly catalog: Pick<Catalog, 'resolve'>;
  readonly cards: Cards;
}

/**
 * Answers with the extended card of an agent, with the gateway's addresses. The agent authenticates the gateway and not
 * its client, so the card is the same for every caller.
 */
export async function showExtendedCard(
  { pipeline, catalog, cards }: ExtendedCardDeps,
  ask: A2aRequest,
  reply: ReplyWriter,
): Promise<void> {
  const { service, offers } = resolveAgent(catalog, ask.service);
  const offer = await cards.preferred(offers);
  const facts = await cards.facts(offer);
  if (!facts.extended) throw noExtendedCard(ask.version, service);
  const origin = ask.origin();
  if (origin === null) throw new A2aError('InvalidRequest', NO_ORIGIN);
  const link = chooseLink(offer, facts, ask.version);
  const { caller, requestId, version } = ask;
  const fetchCard = async (send: Send): Promise<ReplyEnd<A2aResult | null>> => {
    const request = { operation: 'card', version: link.version, params: {}, id: requestId, requestId } as const;
    const reply = await send(agentRequest(link, request)).head;
    for await (const agentReply of readAgent(link, requestId, reply, CARD_BYTES_MAX)) {
      if (agentReply.kind === 'error') return refusedEnd(translateError(link.version, version, agentReply.error));
      const card = cards.extended({ service: ask.service, offers, version, origin }, agentReply.value);
      const text = JSON.stringify(cards.signed(translateResult('card', '1.0', version, card) as object, origin));
      return { ...FREE, finishReason: null, result: { ...NO_RESULT, text } };
    }
    return { ...FREE, finishReason: null, result: null };
  };
  const result = await runFree(
    pipeline,
    {
      primitive: 'agent',
      caller,
      requestId,
      target: pinned(offer.id),
      method: 'agent/getAuthenticatedExtendedCard',
      traceparent: ask.traceparent,
      startAttempt: (_offer, send) => endOnly(() => fetchCard(send)),
    },
    new AbortController().signal,
  );
  if (result?.error) await reply.refused(result.error);
  else if (result?.text) await reply.result(result.text);
  else throw new A2aError('InvalidAgentResponse', 'The answer of the agent is not an agent card');
}

export const noExtendedCard = (version: A2aVersion, service: string): A2aError =>
  new A2aError(
    // 1.0 uses the other error only for an extended card that is declared but missing.
    version === '1.0' ? 'UnsupportedOperation' : 'ExtendedAgentCardNotConfigured',
    `${service} has no extended agent card`,
  );

const CARD_BYTES_MAX = 256 * 1024;
