import {
  interpretedFields,
  type InterpretedFieldsAt,
  type JsonObject,
  ambiguousKeyAt,
  type AmbiguousKeyFault,
  isObject,
  removeAt,
  WRITTEN_NAMES,
} from '#wire';
import { readClientMessage } from '#json-rpc';
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

/** Members that an envelope must have: without them the message would be one of another era. */
const REQUIRED: ReadonlySet<string> = new Set([META.version, META.capabilities]);

/** Optional members, for which some clients write null and which some servers refuse as null. */
const OPTIONAL: readonly (readonly [path: readonly string[], names: readonly string[]])[] = [
  ...NAMES.map(([path, { exact }]) => [path, [...exact].filter((name) => !REQUIRED.has(name))] as const),
  ...[['clientInfo'], ['_meta', META.clientInfo]].map(
    (path) => [path, ['title', 'description', 'websiteUrl', 'icons']] as const,
  ),
  ...[['capabilities'], ['_meta', META.capabilities]].flatMap(
    (path) =>
      [
        [[...path, 'roots'], ['listChanged']],
        [
          [...path, 'sampling'],
          ['context', 'tools'],
        ],
        [
          [...path, 'elicitation'],
          ['form', 'url'],
        ],
      ] as const,
  ),
  [['context'], ['arguments']],
];

/**
 * Reads a client's message as readClientMessage does. Its parameters are ambiguous by NAMES, without the arguments of a
 * tool. A null in one of its optional members is removed, because it stands for none, and some servers refuse it.
 */
export function readMcpMessage(text: string, parsed?: unknown): ReturnType<typeof readClientMessage> {
  const message = readClientMessage(text, ambiguityOf, parsed);
  if (!text.includes('null') || (message?.kind !== 'request' && message?.kind !== 'notification')) return message;
  let rest = message.text;
  for (const [path, names] of OPTIONAL) {
    const holder = path.reduce<unknown>((value, name) => (isObject(value) ? value[name] : null), message.params);
    if (!isObject(holder)) continue;
    for (const name of names) if (holder[name] === null) rest = removeAt(rest, ['params', ...path, name]);
  }
  return rest === message.text ? message : readClientMessage(rest, ambiguityOf);
}

const ambiguityOf = (params: JsonObject): AmbiguousKeyFault | null => ambiguousKeyAt(params, NAMES, 'params.');
