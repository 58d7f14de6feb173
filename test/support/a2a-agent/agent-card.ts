import type { AgentCard, AgentSkill } from '@a2a-js/sdk';
import { duplicateInterfacesForLegacy } from '@a2a-js/sdk/compat/v0_3';
import type { AgentOptions } from './agent.ts';

const SKILL: AgentSkill = {
  id: 'commands',
  name: 'Commands',
  description: 'Does what the first word of a message says.',
  tags: ['test'],
  examples: ['echo hello'],
  inputModes: [],
  outputModes: [],
  securityRequirements: [],
};

/** The card of an agent at this address, in the SDK's form. */
export function createCard(url: string, options: AgentOptions): AgentCard {
  const {
    version = '1.0',
    bindings = ['JSONRPC', 'HTTP+JSON'],
    streaming = true,
    pushNotifications = true,
    extendedCard = 'yes',
    bearer,
  } = options;
  const at = options.cardOrigin ?? url;
  const protocolVersion = version === '0.3' ? '0.3' : '1.0';
  const own = bindings.map((protocolBinding) => ({ url: `${at}/`, protocolBinding, tenant: '', protocolVersion }));
  return {
    name: options.name ?? 'Fixture',
    description: 'An agent for tests.',
    version: '7.8.9',
    supportedInterfaces: version === 'both' ? duplicateInterfacesForLegacy(own, [...bindings]) : own,
    provider: { url: 'https://fixture.example', organization: 'Fixture' },
    documentationUrl: 'https://fixture.example/docs',
    capabilities: { streaming, pushNotifications, extensions: [], extendedAgentCard: extendedCard !== 'no' },
    securitySchemes:
      bearer === undefined
        ? {}
        : {
            bearer: {
              scheme: {
                $case: 'httpAuthSecurityScheme',
                value: { description: '', scheme: 'Bearer', bearerFormat: '' },
              },
            },
          },
    securityRequirements: bearer === undefined ? [] : [{ schemes: { bearer: { list: [] } } }],
    defaultInputModes: [...(options.inputModes ?? ['text/plain', 'application/json'])],
    defaultOutputModes: ['text/plain'],
    skills: [SKILL],
    signatures: [],
  };
}

/** The extended card for authenticated clients. It has one more skill. */
export const extendedCardOf = (card: AgentCard): AgentCard => ({
  ...card,
  skills: [...card.skills, { ...SKILL, id: 'extended', name: 'Extended' }],
});

/** The same card in the form of an agent that only knows 0.3. */
export function legacyCardJson(card: AgentCard): object {
  const [first, ...others] = card.supportedInterfaces.map(({ url, protocolBinding }) => ({
    url: protocolBinding === 'HTTP+JSON' ? url.replace(/\/$/u, '') : url,
    transport: protocolBinding,
  }));
  return {
    protocolVersion: '0.3.0',
    name: card.name,
    description: card.description,
    url: first?.url,
    preferredTransport: first?.transport,
    additionalInterfaces: [first, ...others],
    version: card.version,
    provider: card.provider,
    documentationUrl: card.documentationUrl,
    capabilities: {
      streaming: card.capabilities?.streaming,
      pushNotifications: card.capabilities?.pushNotifications,
      stateTransitionHistory: false,
    },
    defaultInputModes: card.defaultInputModes,
    defaultOutputModes: card.defaultOutputModes,
    skills: card.skills.map(({ id, name, description, tags, examples }) => ({ id, name, description, tags, examples })),
    supportsAuthenticatedExtendedCard: card.capabilities?.extendedAgentCard,
  };
}
