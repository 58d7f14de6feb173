import { interpretedFields, type InterpretedFieldsAt, ambiguousKeyAt, isObject } from '#wire';
import { GatewayError } from '#errors';
import { namesPrivateHost } from '#security';
import type { Offer } from '#catalog';
import { chatSchema, PART_TYPES, STOPS_MAX, type ChatBody, type ContentPart } from '../chat-schema.ts';

/* Requests that the schema allows, and that the gateway refuses because of what a provider would make of them. */

const PRICES = interpretedFields(['prompt', 'completion', 'image']);

/**
 * The members that decide the meaning, the cost and the provider of a request. Each entry has the path of an object
 * and the names of its members.
 */
const INTERPRETED_FIELDS: InterpretedFieldsAt = [
  [
    [],
    interpretedFields(
      [
        ...Object.keys(chatSchema(1).properties),
        ...'functions function_call response_format modalities audio logprobs top_logprobs logit_bias'.split(' '),
        ...'parallel_tool_calls prediction reasoning reasoning_effort service_tier store verbosity'.split(' '),
        ...'safety_identifier prompt_cache_key images image_url image_data'.split(' '),
      ],
      // These are other names of the cap. They do not count as look-alikes.
      ['maxTokens', 'maxCompletionTokens'],
    ),
  ],
  [
    ['messages', '*'],
    interpretedFields([
      'role',
      'content',
      'name',
      'tool_calls',
      'tool_call_id',
      'function_call',
      'refusal',
      'audio',
      'images',
    ]),
  ],
  [['messages', '*', 'content', '*'], interpretedFields(['type', ...PART_TYPES])],
  [['messages', '*', 'content', '*', 'image_url'], interpretedFields(['url', 'detail'])],
  [['messages', '*', 'content', '*', 'video_url'], interpretedFields(['url'])],
  [['messages', '*', 'content', '*', 'audio_url'], interpretedFields(['url'])],
  [['messages', '*', 'content', '*', 'input_audio'], interpretedFields(['data', 'format'])],
  [['messages', '*', 'content', '*', 'file'], interpretedFields(['filename', 'file_data', 'file_id', 'file_url'])],
  [['tools', '*'], interpretedFields(['type', 'function', 'service', 'allowed_tools', 'disallowed_tools'])],
  [['tools', '*', 'function'], interpretedFields(['name', 'description', 'parameters', 'strict'])],
  [['stream_options'], interpretedFields(['include_usage'])],
  [['reasoning'], interpretedFields(['effort', 'max_tokens'])],
  [
    ['provider'],
    interpretedFields([
      ...'order only ignore allow_fallbacks content_fallbacks sort max_price require_parameters data_collection zdr quantizations'.split(
        ' ',
      ),
      'region',
    ]),
  ],
  [['provider', 'max_price'], PRICES],
  [['tollgate'], interpretedFields(['task_id', 'context_id'])],
];

/**
 * Throws GatewayError `invalid_request` for a body with an ambiguous key: a member that a provider could take for
 * one of the members above.
 */
export function refuseAmbiguousKeys(body: unknown): void {
  const fault = typeof body === 'object' && body !== null ? ambiguousKeyAt(body, INTERPRETED_FIELDS) : null;
  if (fault !== null) throw new GatewayError('invalid_request', fault.message, { param: fault.param });
}

/**
 * Throws GatewayError `unprocessable` for `plugins` of another router, because an answer without the requested
 * plugin, such as a web search, is not what the client asked for. Plugins that are switched off are allowed.
 */
export function refusePlugins({ plugins }: ChatBody): void {
  if (!Array.isArray(plugins)) return;
  for (const [index, plugin] of plugins.entries()) {
    const { id, enabled } = (typeof plugin === 'object' && plugin !== null ? plugin : {}) as {
      readonly id?: unknown;
      readonly enabled?: unknown;
    };
    if (enabled === false) continue;
    const name = typeof id === 'string' ? ` ${JSON.stringify(id.slice(0, 64).toWellFormed())}` : '';
    throw new GatewayError(
      'unprocessable',
      `This gateway has no plugin${name}. Remove plugins. Name the tools of a service in tools: {"type": "mcp", "service": "…"}`,
      { param: `plugins[${index}]` },
    );
  }
}

/**
 * Throws GatewayError `unprocessable` for a request that an offer cannot serve, because a package of the AI SDK serves
 * it: such a package makes one completion, in text and pictures, and calls no `functions`.
 */
export function refuseForPackage({ n, modalities, functions }: ChatBody, { endpoint, service }: Offer): void {
  if (endpoint.kind !== 'direct' || endpoint.sdk === undefined) return;
  const refused: readonly [string, boolean, string][] = [
    ['n', (n ?? 1) > 1, 'makes one completion for a call'],
    ['modalities', Array.isArray(modalities) && modalities.includes('audio'), 'answers without audio'],
    ['functions', Array.isArray(functions) && functions.length > 0, 'takes functions as tools'],
  ];
  for (const [param, isRequested, why] of refused)
    if (isRequested) throw new GatewayError('unprocessable', `${service} ${why}`, { param });
}

/**
 * Throws GatewayError `invalid_request` for more stop sequences than the chat API takes. A request of another wire may
 * have more, and this offer would get it as a chat request.
 */
export function refuseManyStops({ stop }: ChatBody, { service }: Offer): void {
  if (!Array.isArray(stop) || stop.length <= STOPS_MAX) return;
  throw new GatewayError(
    'invalid_request',
    `${service} takes at most ${STOPS_MAX} stop sequences, and the request has ${stop.length}`,
    { param: 'stop' },
  );
}

/**
 * Throws GatewayError `invalid_request` for a part that names a file in the provider's account, because all consumers
 * share that account. A part of an earlier answer may be named (`audio.id`), as clients do to go on.
 */
export function refuseStoredFiles({ messages }: ChatBody): void {
  for (const [i, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue;
    for (const [j, part] of content.entries())
      for (const holder in PLACES) {
        const value = part[holder];
        if (!isObject(value) || value['file_id'] === undefined || value['file_id'] === null) continue;
        const param = `messages[${i}].content[${j}].${holder}.file_id`;
        throw storedAtProvider(param);
      }
  }
}

/** The error for a member that names something in the account of a provider. */
export const storedAtProvider = (param: string): GatewayError =>
  new GatewayError(
    'invalid_request',
    `${param} refers to something stored at a provider, which this gateway does not support. Send the content itself`,
    { param },
  );

/** The members that may hold an address, by the type of the part. */
const PLACES: Readonly<Record<string, readonly string[]>> = {
  image_url: ['url'],
  video_url: ['url'],
  audio_url: ['url'],
  file: ['file_data', 'file_url'],
};

/**
 * Throws GatewayError `invalid_request` for a part whose address names a host of a private network, because the
 * provider would fetch it from inside its own network. The provider itself has to check the IP addresses that public
 * names resolve to.
 */
export function refusePrivateMedia({ messages }: ChatBody): void {
  for (const [i, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue;
    for (const [j, part] of content.entries()) {
      const place = privatePlace(part);
      if (place === null) continue;
      const param = `messages[${i}].content[${j}].${place}`;
      throw new GatewayError('invalid_request', `${param} must name a host of the public internet, or be a data URL`, {
        param,
      });
    }
  }
}

function privatePlace(part: ContentPart): string | null {
  for (const holder in PLACES) {
    const value = part[holder];
    if (typeof value === 'string' && namesPrivateHost(value)) return holder;
    if (typeof value !== 'object' || value === null) continue;
    for (const name of PLACES[holder]!) {
      const address = (value as Readonly<Record<string, unknown>>)[name];
      if (typeof address === 'string' && namesPrivateHost(address)) return `${holder}.${name}`;
    }
  }
  return null;
}

/** Members that may hold an address, on the wires of chat whose requests are forwarded unchanged. */
const ADDRESSES: ReadonlySet<string> = new Set(['url', 'image_url', 'file_url', 'file_data', 'fileUri', 'server_url']);

/**
 * Refuses addresses of private hosts like refusePrivateMedia, but searches all levels, for a request that is forwarded
 * unchanged. `names`: the members that may hold an address.
 */
export function refusePrivateUrls(value: unknown, names: ReadonlySet<string> = ADDRESSES, path = ''): void {
  if (Array.isArray(value))
    (value as unknown[]).forEach((element, i) => refusePrivateUrls(element, names, `${path}[${i}]`));
  else if (isObject(value))
    for (const [name, member] of Object.entries(value)) {
      const param = path === '' ? name : `${path}.${name}`;
      if (typeof member !== 'string') refusePrivateUrls(member, names, param);
      else if (names.has(name) && namesPrivateHost(member))
        throw new GatewayError('invalid_request', `${param} must name a host of the public internet`, { param });
    }
}
