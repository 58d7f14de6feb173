import { formatUsd } from '#billing';
import { option } from '../config-option.ts';
import type { AgentService } from '../config.ts';
import { COMMON_OPTIONS, bearerKey, optionalCheckedText, readEndpoint } from './block-options.ts';
import { defineBlock } from './block.ts';
import { CALL_PRICE, COMPLETION_PRICE, optionalPrice, PROMPT_PRICE } from './price-option.ts';
import { perUnit, rates } from './rates.ts';

const CARD_PATH = /^\/[A-Za-z0-9._~/-]{1,255}$/;

const offer = {
  ...COMMON_OPTIONS,
  agent_card_path: optionalCheckedText(
    'path with a leading slash',
    "Where the agent's card is, below `endpoint`.",
    '/.well-known/agent-card.json',
    (value) => (CARD_PATH.test(value) && !value.includes('..') && !value.includes('//') ? null : 'is no plain path'),
  ),
  'pricing.per_call': optionalPrice(CALL_PRICE),
  'pricing.prompt': optionalPrice(PROMPT_PRICE),
  'pricing.completion': optionalPrice(COMPLETION_PRICE),
};

const target = {
  endpoint: option({
    takes: 'an http:// or https:// URL',
    meaning: 'Address of an A2A agent.',
    read: (value) => readEndpoint(value, 'the address of an A2A agent, such as https://agent.example.com'),
  }),
  api_key: bearerKey('Key that the agent asks for, sent as a bearer token.'),
};

/** `[[agents]]`: an A2A agent. Priced by the call, by its tokens, or both. */
export const AGENT_BLOCK = defineBlock<AgentService, typeof offer, typeof target>({
  primitive: 'agent',
  offer,
  target,
  toService(values, complain) {
    const priced = rates({ prompt: values['pricing.prompt'], completion: values['pricing.completion'], call: values['pricing.per_call'] });
    if (Object.keys(priced).length === 0) complain('pricing', 'has no price', 'per_call, prompt or completion; 0 is free');
    return { rates: priced, variants: {}, agent: { cardPath: values.agent_card_path } };
  },
  toTarget: ({ endpoint, api_key: apiKey }) => ({ kind: 'http', url: endpoint, apiKey }),
  toBlock: ({ agent, rates: { call, prompt, completion } }) => ({
    agent_card_path: agent.cardPath,
    pricing: {
      ...(call === undefined ? {} : { per_call: perUnit(call) }),
      ...(prompt === undefined ? {} : { prompt: formatUsd(prompt) }),
      ...(completion === undefined ? {} : { completion: formatUsd(completion) }),
    },
  }),
});
