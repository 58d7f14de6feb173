import { oneLine } from '#wire';
import type { HttpTarget, Service } from '#config';
import { ask, jsonObject, mustSucceed } from './ask.ts';
import { ProbeFailure, type Check } from './check.ts';

type AgentService = Extract<Service, { primitive: 'agent' }>;

/** Checks that an agent serves its card, in the form of either protocol version. */
export function agentCheck(service: AgentService, target: HttpTarget): Check {
  return {
    kind: 'agent',
    name: service.name,
    async run() {
      const { cardPath, rpcPath } = service.agent;
      const card = await cardOf(target, cardPath);
      const { url, supportedInterfaces: interfaces, skills } = card;
      const bare = typeof url !== 'string' && !(Array.isArray(interfaces) && interfaces.length > 0);
      const count = Array.isArray(skills) ? skills.length : 0;
      const words = `the card of ${oneLine(String(card['name'])).slice(0, 60)}, ${count} ${count === 1 ? 'skill' : 'skills'}`;
      return bare ? `${words}; messages are posted to ${rpcPath ?? '/a2a'}, because the card has no address` : words;
    },
  };
}

const WELL_KNOWN = ['/.well-known/agent-card.json', '/.well-known/agent.json'];

/**
 * Finds the card as the gateway does: at the path in the file, then at the well-known paths. Rejects with the error of
 * the first path.
 */
async function cardOf({ url, apiKey }: HttpTarget, cardPath: string): Promise<Readonly<Record<string, unknown>>> {
  let first: ProbeFailure | null = null;
  for (const path of new Set([cardPath, ...WELL_KNOWN])) {
    try {
      const answer = await ask({ method: 'GET', url: url + path, apiKey, headers: { accept: 'application/json' } });
      mustSucceed(answer);
      const card = jsonObject(answer.text, 'the agent card');
      if (typeof card['name'] !== 'string' || card['name'] === '') throw new ProbeFailure('the agent card has no name');
      return card;
    } catch (error) {
      if (!(error instanceof ProbeFailure)) throw error;
      first ??= error;
    }
  }
  throw first!;
}
