import { formatUsd, type Rates } from '#billing/amounts';
import { option } from '../option.ts';
import { show, WrongValue } from '../problem.ts';
import {
  COMMON_OPTIONS,
  bearerKey,
  optionalCheckedText,
  readUrl,
  defineBlock,
  firstEventTimeout,
  headTimeout,
  toHttpTarget,
  withTimeouts,
} from './block.ts';
import { alwaysWritten, field } from './field.ts';
import {
  CALL_PRICE,
  callCost,
  checkCap,
  COSTS_BY_USE,
  hasPriceByUse,
  optionalPrice,
  perUnit,
  PRICES_BY_USE,
  rates,
} from './price.ts';
import { callsCost } from './price-tiers.ts';

const CARD_PATH = /^\/[A-Za-z0-9._~/-]{1,255}$/;

const isPath = (value: string): boolean => CARD_PATH.test(value) && !value.includes('..') && !value.includes('//');

const offer = {
  ...COMMON_OPTIONS,
  agent_card_path: alwaysWritten(
    'agent.cardPath',
    optionalCheckedText(
      'path with a leading slash',
      "Path of the agent's card, below `endpoint`.",
      '/.well-known/agent-card.json',
      (value) => (isPath(value) ? null : 'is not a plain path'),
    ),
  ),
  rpc_path: field(
    'agent.rpcPath',
    option<string | null>({
      takes: 'path with a leading slash, or nothing',
      meaning: 'Path for JSON-RPC requests, below `endpoint`. "" is `endpoint` itself.',
      optional: { text: 'the path of the address in the card', fallback: null },
      read: (value) => {
        if (typeof value === 'string' && (value === '' || isPath(value))) return value;
        throw new WrongValue(`is ${show(value)}`, 'a path such as "/a2a", or ""');
      },
    }),
  ),
  'pricing.per_call': optionalPrice(CALL_PRICE),
  'pricing.per_task': optionalPrice({ ...CALL_PRICE, unit: 'task' }),
  ...PRICES_BY_USE,
  'pricing.per_call_max': field(
    'priceCap',
    callCost(
      'Largest cost of one message or one task, which is locked before it. Required with `per_second`, `prompt` or `completion`, whose use the agent reports at the end of a task.',
      { text: 'none', fallback: null },
    ),
    formatUsd,
  ),
  'pricing.nested_max': field(
    'agent.nestedMax',
    callCost(
      "Budget of the agent, for one message, for calls that it makes through the gateway at the consumer's cost. It is locked in addition to the price. A consumer may set another budget.",
      { text: '0', fallback: 0n },
    ),
    formatUsd,
  ),
};

const place = {
  endpoint: field(
    'url',
    option({
      takes: 'an http:// or https:// URL',
      meaning: 'Address of an A2A agent.',
      read: (value) => {
        const right = 'the address of an A2A agent, such as https://agent.example.com';
        const { origin, path } = readUrl(value, right, 'api_key');
        return origin + path;
      },
    }),
  ),
  api_key: field('apiKey', bearerKey('Key for the agent, sent as a bearer token.')),
};
const target = {
  ...place,
  cost: callsCost({ per_call: CALL_PRICE, per_task: { ...CALL_PRICE, unit: 'task' }, ...COSTS_BY_USE }),
  head_timeout_ms: headTimeout('agent'),
  first_event_timeout_ms: firstEventTimeout('agent'),
};
const toPlace = toHttpTarget(place);

interface AgentPrice {
  readonly rates: Rates;
  readonly variants: Readonly<Record<string, Rates>>;
  /** Whether the price of a call covers one message, or all messages of a task. */
  readonly agent: { readonly chargedPer: 'message' | 'task' };
}

/** `[[agents]]`: an A2A agent. It is priced by the message or task, by use with a cap, or both. */
export const AGENT_BLOCK = defineBlock({
  primitive: 'agent',
  offer,
  target,
  check(values, complain) {
    const perTask = values['pricing.per_task'];
    const perCall = values['pricing.per_call'];
    if (perTask !== null && perCall !== null)
      complain(
        'pricing.per_task',
        'is given together with per_call',
        'one of the two: a price for each message, or one for the whole task',
      );
    if (perTask === null && perCall === null && !hasPriceByUse(values))
      complain('pricing', 'has no price', 'per_call, per_task, per_second, prompt or completion; 0 is free');
    checkCap(values, complain);
  },
  combine: ({ 'pricing.per_task': perTask, 'pricing.per_call': perCall }): AgentPrice => ({
    rates: rates({ call: perTask ?? perCall }),
    variants: {},
    agent: { chargedPer: perTask === null ? 'message' : 'task' },
  }),
  separate({ rates: { call }, agent: { chargedPer } }) {
    const price = call === undefined ? undefined : perUnit(call);
    const byTask = chargedPer === 'task';
    return { 'pricing.per_call': byTask ? undefined : price, 'pricing.per_task': byTask ? price : undefined };
  },
  writtenLast: [],
  toTarget: ({ head_timeout_ms: headMs, first_event_timeout_ms: firstEventMs, cost, ...values }) =>
    withTimeouts({ ...toPlace(values), ...(cost === null ? {} : { cost }) }, headMs, firstEventMs),
});
