import { foldName, isObject, type JsonObject } from '#wire';
import { GatewayError } from '#errors';
import type { Meter } from '#billing/amounts';
import type { Offer } from '#catalog';
import type { ChatBody } from '../chat-schema.ts';
import { prices } from './priced-parts.ts';

/*
 * What a request can ask for that costs money beside the tokens of text, on every API of chat models. It reaches a
 * provider only if the model has a price for it, or if `params.forward` of its block names it; "all" names none of it.
 * Otherwise a tool or a kind of output is refused, and a field is left out (decision 157).
 */

/** A tool that runs at the provider, or a kind of output besides text. */
export interface PaidExtra {
  readonly kind: 'tool' | 'output';
  /** Names of `params.forward` that let it pass. The first one is told. */
  readonly names: readonly string[];
  /** The price that pays for it; null for something that cannot have one. */
  readonly meter: Meter | null;
  /** Its place in the request. */
  readonly at: string;
  readonly output?: string;
  /** An element of `tools` that an offer without a price for it may get the request without. */
  readonly tool?: JsonObject;
}

/** Whether the block of an offer names something in `params.forward`. */
export const listed = ({ model }: Offer, name: string): boolean =>
  Array.isArray(model!.forward) && (model!.forward as readonly string[]).includes(name);

/** Whether an offer gets what costs money of its own: it has a price for it, declares it, or lists it. */
export const isPaidFor = (offer: Offer, { names, meter, output }: PaidExtra): boolean =>
  (meter !== null && prices(offer, meter)) ||
  (output !== undefined && offer.model!.outputModalities.includes(output)) ||
  names.some((name) => listed(offer, name));

export function unpaid(
  { service }: Pick<Offer, 'service'>,
  { kind, names, meter, output, at }: PaidExtra,
): GatewayError {
  const what =
    kind === 'output'
      ? `${service} has no price for ${output} as output`
      : `${service} has no price for the tool ${names[0]}, which runs at its provider`;
  const ways = [
    ...(meter === null ? [] : [`pricing.${meter}`]),
    ...(output === undefined ? [] : [`output_modalities with "${output}"`]),
    `params.forward = ["${names[0]}"]`,
  ];
  return new GatewayError(
    'unprocessable',
    `${what}. Leave out ${at}, or use another model. The operator can set ${ways.join(' or ')} for the model`,
    { param: at },
  );
}

/** Throws GatewayError `unprocessable` for something that an offer has no price for. */
export function refuseUnpaid(extras: readonly PaidExtra[], offer: Offer): void {
  for (const extra of extras) if (!isPaidFor(offer, extra)) throw unpaid(offer, extra);
}

interface Priced {
  readonly requestBody: JsonObject;
  readonly dropped: readonly string[];
}

/**
 * The request without the tools that an offer has no price for, if others are left and the request does not insist on
 * one: coding agents send the same tools to every model, and a translated request goes without them, too. Throws
 * GatewayError `unprocessable` for anything else without a price. Returns the same object if nothing is left out.
 */
export function withoutUnpaid(requestBody: JsonObject, extras: readonly PaidExtra[], offer: Offer): Priced {
  const missing = extras.filter((extra) => !isPaidFor(offer, extra));
  if (missing.length === 0) return { requestBody, dropped: [] };
  const all = requestBody['tools'] as readonly unknown[];
  const out = new Set<unknown>(missing.map(({ tool }) => tool));
  const needed = missing.find(({ tool }) => tool === undefined || insistsOn(requestBody['tool_choice'], tool));
  const tools = needed === undefined ? all.filter((tool) => !out.has(tool)) : [];
  if (tools.length === 0) throw unpaid(offer, needed ?? missing[0]!);
  return {
    requestBody: { ...requestBody, tools },
    dropped: missing.map(({ tool }) => String(tool!['name'] ?? tool!['type'])),
  };
}

/** Whether a choice of tools names a tool, by its type or its name. */
function insistsOn(choice: unknown, tool: JsonObject): boolean {
  if (Array.isArray(choice)) return (choice as unknown[]).some((one) => insistsOn(one, tool));
  if (!isObject(choice)) return false;
  const { type, name } = tool;
  if (choice['type'] === type || (name !== undefined && choice['name'] === name)) return true;
  return Object.values(choice).some((member) => insistsOn(member, tool));
}

/* Tools. A tool of an unknown type counts as one that runs at the provider. */

const VERSION = /[-_](?:\d{8}|\d{4}[-_]\d\d[-_]\d\d)$/;

/** The type of a tool without the date of its version: `web_search` of `web_search_20250305`. */
const family = (type: string): string => type.replace(VERSION, '');

/** Whether a tool of this type searches the web. One that searches files or tools does not. */
export const isSearchTool = (type: unknown): boolean =>
  typeof type === 'string' && /^(?!.*(?:file|tool)_?search).*search/i.test(type);

/** A tool that runs at the provider. `meter`: absent for that of its type. */
export function hostedTool(type: unknown, at: string, more: Pick<PaidExtra, 'tool'> = {}): PaidExtra {
  const name = typeof type === 'string' && type !== '' ? type.slice(0, 64).toWellFormed() : 'of an unknown type';
  return {
    kind: 'tool',
    names: [family(name), name],
    meter: isSearchTool(type) ? 'web_search' : null,
    at,
    ...more,
  };
}

/** Types of tools of chat that the client calls, or the gateway. */
const CALLED_HERE: ReadonlySet<unknown> = new Set(['function', 'custom', 'mcp']);
/** Members of such a tool that may be structures. */
const OF_A_CALLED_TOOL: ReadonlySet<string> = new Set(
  (
    'function custom parameters inputschema outputschema allowedtools disallowedtools ' +
    'allowedcallers inputexamples cachecontrol metadata annotations'
  ).split(' '),
);

/** The name of what a tool of chat runs at its provider; null if it does not. Some servers go by its members alone. */
function hostedIn(tool: JsonObject): string | null {
  if (!CALLED_HERE.has(tool['type'])) return String(tool['type']);
  for (const name in tool)
    if (typeof tool[name] === 'object' && tool[name] !== null && !OF_A_CALLED_TOOL.has(foldName(name))) return name;
  return null;
}

export function chatExtras(body: ChatBody): readonly PaidExtra[] {
  const extras: PaidExtra[] = [];
  for (const field in body) {
    const value: unknown = body[field];
    if (value === undefined || value === null || value === false) continue;
    const name = foldName(field);
    if (name === 'tools' && Array.isArray(value))
      for (const [index, tool] of (value as unknown[]).entries()) {
        const hosted = isObject(tool) ? hostedIn(tool) : 'of an unknown type';
        if (hosted !== null) extras.push(hostedTool(hosted, `tools[${index}]`));
      }
    else if (OUTPUT_FIELDS.has(name)) extras.push(...outputs(value, field));
    else if (name === 'audio') extras.push(output('audio', field));
  }
  return extras;
}

/* Kinds of output. */

const METERS: Readonly<Record<string, Meter>> = { audio: 'audio_output', image: 'image_output' };

/** ProtoJSON also takes the number of a kind. */
const NUMBERED: Readonly<Record<string, string>> = { 0: 'text', 1: 'text', 2: 'image', 3: 'audio', 4: 'video' };

const output = (kind: string, at: string): PaidExtra => ({
  kind: 'output',
  names: [at.split('.').at(-1)!, kind],
  meter: METERS[kind] ?? null,
  at,
  output: kind,
});

/** The kinds of output, besides text, that a list of them asks for. `at`: its field, which a block may list. */
export function outputs(modalities: unknown, at: string): readonly PaidExtra[] {
  if (modalities === undefined || modalities === null) return [];
  const requestedModalities = (Array.isArray(modalities) ? (modalities as unknown[]) : [modalities]).map((one) => {
    const kind = String(one).toLowerCase();
    return NUMBERED[kind] ?? (kind === 'modality_unspecified' ? 'text' : kind.slice(0, 64).toWellFormed());
  });
  return [...new Set(requestedModalities)].filter((kind) => kind !== 'text').map((kind) => output(kind, at));
}

/** Whether something may be answered in sound: each kind but text and pictures may have it. */
export const asksForSound = (extras: readonly PaidExtra[]): boolean =>
  extras.some(({ output: kind }) => kind !== undefined && kind !== 'image');

/* Fields, by their folded names, because some servers fold them. */

const words = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/).filter((word) => word !== ''));

/** The service tier; the second is that of Vertex in the options of its package. */
export const SERVICE_TIERS = words(`servicetier sharedrequesttype`);

/**
 * Fields that choose another price, add work or tokens that no price counts, or refer to something that the provider
 * keeps and counts as prompt.
 */
const PAID_FIELDS = words(`
  priority speed inferencegeo prediction background deferred betas anthropicbeta plugins mcpservers
  container containers contextmanagement cachedcontent previousresponseid conversation conversationid
  mmprocessorkwargs mediaiokwargs
`);

/** Options of a paid field that raise its price at some vendors. */
export const RAISING = words(`searchcontextsize`);
const SEARCH = /(?<!beam)search|grounding/;

/**
 * The price that pays for a field: that of searches, or null for one that has no price, so that a model has to list it.
 * undefined for a field that costs nothing of its own. `name`: folded.
 */
export function paidBy(name: string): Meter | null | undefined {
  if (SEARCH.test(name)) return 'web_search';
  return PAID_FIELDS.has(name) || SERVICE_TIERS.has(name) ? null : undefined;
}

/**
 * Folded names of fields with kinds of output. Inside of other fields, and on other APIs, only models that list them
 * get them.
 */
export const OUTPUT_FIELDS = words(`modalities outputmodalities responsemodalities`);

/**
 * Betas of the Messages API that change what a call costs. Some have another price of a token, or use other models at
 * their prices. Others add something to the prompt that is not in the request, so that the lock would be too small.
 * All other betas pass, because clients ask for new ones with every version, and fail without them.
 */
export const PAID_BETA = new RegExp(
  '^(?:context-[0-9]+[km]|extended-cache-ttl|fast-mode|speed|priority|service-tier|inference-geo|data-residency|' +
    'user-profiles-billing|server-side-fallback|fallback|advisor|skills|' +
    'compact|message-threads|agent-memory|managed-agents|dreaming)(?:-|$)',
  'i',
);
