import {
  interpretedFields,
  type InterpretedFieldsAt,
  type JsonObject,
  ambiguousKeyAt,
  type AmbiguousKeyFault,
  WRITTEN_NAMES,
} from '#wire';
import { MAX_COST_META } from '#call';
import { META, X402 } from './revisions.ts';

/** Members of a request's `_meta` that the gateway reads. */
const READ = ['tollgate/idempotency-key', MAX_COST_META, 'tollgate/receipt', X402.payment] as const;

/** Members of a request's `_meta` that the provider does not get: those for the gateway, and those that it wrote. */
export const OURS: readonly string[] = [...new Set([...READ, ...WRITTEN_NAMES, X402.response])];

const CAPABILITIES = interpretedFields(['elicitation', 'sampling', 'roots', 'tasks', 'experimental', 'extensions']);

/**
 * Names in a client's message that decide what is asked, for whom, and how it continues. They are grouped by the object
 * that holds them. All methods share one list, because a server may read a name that the called method does not define.
 */
const NAMES: InterpretedFieldsAt = [
  [
    [],
    interpretedFields([
      ...'name arguments uri _meta cursor ref argument context level'.split(' '),
      ...'task taskId requestState inputResponses notifications'.split(' '),
      ...'protocolVersion capabilities clientInfo'.split(' '),
      ...'requestId reason progressToken progress total message'.split(' '),
    ]),
  ],
  [
    ['_meta'],
    interpretedFields([
      ...READ,
      ...Object.values(META),
      X402.response,
      'progressToken',
      'traceparent',
      'tracestate',
      'baggage',
    ]),
  ],
  [['_meta', META.capabilities], CAPABILITIES],
  [['capabilities'], CAPABILITIES],
  [['ref'], interpretedFields(['type', 'name', 'uri'])],
  [['argument'], interpretedFields(['name', 'value'])],
  [['task'], interpretedFields(['ttl'])],
  [
    ['notifications'],
    interpretedFields([
      'toolsListChanged',
      'promptsListChanged',
      'resourcesListChanged',
      'resourceSubscriptions',
      'taskIds',
    ]),
  ],
];

/**
 * Says why the parameters of a client's message are ambiguous; null if they are not. The arguments of a tool are not
 * checked.
 */
export const ambiguityOf = (params: JsonObject): AmbiguousKeyFault | null => ambiguousKeyAt(params, NAMES, 'params.');
