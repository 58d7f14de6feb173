import type { HttpTarget, Service } from '#gateway/wire';
import { ask, jsonObject, mustSucceed } from './ask.ts';
import { ProbeFailure, type Check } from './check.ts';

type AgentService = Extract<Service, { primitive: 'agent' }>;

/** An agent shows its card, in the form of either version of the protocol. */
export function agentCheck(service: AgentService, target: HttpTarget): Check {
  return {
    kind: 'agent',
    name: service.name,
    async run() {
      const answer = await ask({
        method: 'GET',
        url: target.url + service.agent.cardPath,
        apiKey: target.apiKey,
        headers: { accept: 'application/json' },
      });
      mustSucceed(answer);
      const card = jsonObject(answer.text, 'the agent card');
      if (typeof card['name'] !== 'string' || card['name'] === '') throw new ProbeFailure('the agent card has no name');
      const { url, supportedInterfaces: interfaces, skills } = card;
      if (typeof url !== 'string' && !(Array.isArray(interfaces) && interfaces.length > 0))
        throw new ProbeFailure('the agent card says nothing of where the agent is: it has neither url nor supportedInterfaces');
      const count = Array.isArray(skills) ? skills.length : 0;
      return `the card of ${card['name'].replace(/\p{C}+/gu, ' ').slice(0, 60)}, ${count} ${count === 1 ? 'skill' : 'skills'}`;
    },
  };
}
