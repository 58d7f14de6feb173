import { formatUsd } from '#billing/amounts';
import { option } from '../option.ts';
import { show, WrongValue } from '../problem.ts';
import type { AgentService } from '../service.ts';
import { COMMON_OPTIONS, bearerKey, optionalCheckedText, readEndpoint, defineBlock } from './block.ts';
import {
  byUse,
  CALL_PRICE,
  callCost,
  checkCap,
  optionalPrice,
  PRICES_BY_USE,
  useToBlock,
  perUnit,
  rates as ratesOf,
} from './price.ts';

const CARD_PATH = /^\/[A-Za-z0-9._~/-]{1,255}$/;

const isPath = (value: string): boolean => CARD_PATH.test(value) && !value.includes('..') && !value.includes('//');

const offer = {
  ...COMMON_OPTIONS,
  agent_card_path: optionalCheckedText(
    'path with a leading slash',
    "Path of the agent's card, below `endpoint`.",
    '/.well-known/agent-card.json',
    (value) => (isPath(value) ? null : 'is not a plain path'),
  ),
  rpc_path: option<string | null>({
    takes: 'path with a leading slash, or nothing',
    meaning: 'Path for JSON-RPC requests, below `endpoint`. "" is `endpoint` itself.',
    optional: { text: 'the path of the address in the card', fallback: null },
    read: (value) => {
      if (typeof value === 'string' && (value === '' || isPath(value))) return value;
      throw new WrongValue(`is ${show(value)}`, 'a path such as "/a2a", or ""');
    },
  }),
  'pricing.per_call': optionalPrice(CALL_PRICE),
  'pricing.per_task': optionalPrice({ ...CALL_PRICE, unit: 'task' }),
  ...PRICES_BY_USE,
  'pricing.per_call_max': callCost(
    'Largest cost of one message or one task, which is locked before it. Required with `per_second`, `prompt` or `completion`, whose use the agent reports at the end of a task.',
    { text: 'none', fallback: null },
  ),
  'pricing.nested_max': callCost(
    "Budget of the agent, for one message, for calls that it makes through the gateway at the consumer's cost. It is locked in addition to the price. A consumer may set another budget.",
    { text: '0', fallback: 0n },
  ),
};

const target = {
  endpoint: option({
    takes: 'an http:// or https:// URL',
    meaning: 'Address of an A2A agent.',
    read: (value) => readEndpoint(value, 'the address of an A2A agent, such as https://agent.example.com'),
  }),
  api_key: bearerKey('Key for the agent, sent as a bearer token.'),
};

/** `[[agents]]`: an A2A agent. It is priced by the message or task, by use with a cap, or both. */
export const AGENT_BLOCK = defineBlock<AgentService, typeof offer, typeof target>({
  primitive: 'agent',
  offer,
  target,
  toService(values, complain) {
    const prices = byUse(values);
    const perTask = values['pricing.per_task'];
    const perCall = values['pricing.per_call'];
    if (perTask !== null && perCall !== null)
      complain(
        'pricing.per_task',
        'is given together with per_call',
        'one of the two: a price for each message, or one for the whole task',
      );
    const priced = ratesOf({ ...prices, call: perTask ?? perCall });
    if (Object.keys(priced).length === 0)
      complain('pricing', 'has no price', 'per_call, per_task, per_second, prompt or completion; 0 is free');
    const priceCap = values['pricing.per_call_max'];
    checkCap(prices, priceCap, complain);
    return {
      rates: priced,
      variants: {},
      priceCap,
      agent: {
        cardPath: values.agent_card_path,
        rpcPath: values.rpc_path,
        chargedPer: perTask === null ? 'message' : 'task',
        nestedMax: values['pricing.nested_max'],
      },
    };
  },
  toTarget: ({ endpoint, api_key: apiKey }) => ({ kind: 'http', url: endpoint, apiKey }),
  toBlock: ({ agent, priceCap, rates }) => ({
    agent_card_path: agent.cardPath,
    ...(agent.rpcPath === null ? {} : { rpc_path: agent.rpcPath }),
    pricing: {
      ...(rates.call === undefined
        ? {}
        : { [agent.chargedPer === 'task' ? 'per_task' : 'per_call']: perUnit(rates.call) }),
      ...useToBlock(rates, priceCap),
      ...(agent.nestedMax === 0n ? {} : { nested_max: formatUsd(agent.nestedMax) }),
    },
  }),
});
