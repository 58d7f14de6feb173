import { onTestFinished } from 'vitest';
import {
  agentBlock,
  startCardedAgent,
  type AgentOffer,
  type AgentSpine,
  type RawAgent,
  type RawExchange,
} from '../../../support/a2a-agent/index.ts';
import { dialIn, type DialledIn } from '../../../support/dial-in.ts';

export interface RawServed {
  readonly agent: RawAgent;
  readonly proxy: DialledIn;
  readonly service: string;
  readonly url: string;
}

let served = 0;

/**
 * An agent whose answers a test writes, behind a provider's tunnel until the test is over. It has a card of both
 * versions, or of 1.0 alone; `handler` gets everything else. `beside`: other blocks in the file of its provider.
 */
export async function serveRaw(
  world: Pick<AgentSpine, 'spine'>,
  handler: (exchange: RawExchange) => void | Promise<void>,
  offer: Partial<AgentOffer> & {
    readonly streaming?: boolean;
    readonly modern?: boolean;
    readonly beside?: string;
  } = {},
): Promise<RawServed> {
  // Kept here: others may be served while this one starts.
  const number = (served += 1);
  const service = offer.name ?? `raw-${number}/agent`;
  const agent = await startCardedAgent(handler, {
    versions: offer.modern === true ? ['1.0'] : ['1.0', '0.3'],
    streaming: offer.streaming ?? true,
  });
  const own = agentBlock({ provider: `Raw ${number}`, ...offer, name: service, endpoint: agent.url });
  const proxy = await dialIn({ router: world.spine.origin, services: own + (offer.beside ?? '') });
  onTestFinished(async () => {
    proxy.kill();
    await agent.close();
  });
  return { agent, proxy, service, url: `${world.spine.origin}/a2a/${service}` };
}

/** A task of 1.0 as the result of a send. */
export const taskResult = (id: string, state: string, more: object = {}) => ({
  task: {
    id,
    contextId: `context-of-${id}`,
    status: { state: `TASK_STATE_${state}`, timestamp: '2026-11-20T10:00:00.000Z' },
    ...more,
  },
});

/** A change of a task's state as an event of 1.0. */
export const statusEvent = (taskId: string, state: string, more: object = {}) => ({
  statusUpdate: { taskId, contextId: `context-of-${taskId}`, status: { state: `TASK_STATE_${state}` }, ...more },
});

/** Writes one event of a stream, which goes on. */
export function writeEvent({ response, id }: RawExchange, result: object): void {
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`);
}
