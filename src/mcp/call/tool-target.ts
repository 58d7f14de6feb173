import { GatewayError } from '#errors';
import { type JsonLimits, type JsonObject, guardInTurns, isObject, OWN_TURN_BYTES, ownTurn } from '#wire';
import { printable } from '#security';
import type { RequestMessage } from '#json-rpc';
import { type Catalog, namesToCompare, nearestHint } from '#catalog';
import { newCallId } from '#call';
import type { TargetAdapter, Part, TargetRequest } from '#bridge';
import type { ToolEntry } from '../catalogue/listing.ts';
import type { ToolCatalogue, ServiceListing } from '../catalogue/tool-catalogue.ts';
import { allWithin } from '../request/waiting.ts';
import { readOwnRequest } from '../wire/own-messages.ts';
import { LEGACY_METHODS } from '../wire/revisions.ts';
import { priceOfTool } from '../request/ending.ts';
import { partsAdapter } from './parts-adapter.ts';
import { TOOL_NAME_MAX } from '../shapes/definitions.ts';
import { requestCall, type RequestCallDeps } from './request-call.ts';
import { UpstreamAdapter } from './upstream-adapter.ts';
import type { McpRequest } from '../request/mcp-request.ts';

interface ToolTargetDeps extends RequestCallDeps {
  readonly catalog: Pick<Catalog, 'resolve' | 'offers'>;
  readonly catalogue: Pick<ToolCatalogue, 'service' | 'tried'>;
  readonly limits: JsonLimits;
  readonly bytesMax: number;
}

/** The facts about a tool that a prompt needs. All its texts come from the server. */
interface DescribedTool {
  readonly name: string;
  readonly description: string;
  /** Parses it, so it is called for those tools that a request takes. */
  inputSchema(): JsonObject;
}

export interface ToolTarget {
  /** The tools of all services, each named `<service>/<tool>`. */
  readonly target: TargetAdapter;
  /**
   * The tools of a service, as its servers list them. If the service was never reached, waits some seconds for its
   * lists. Rejects with GatewayError `not_found`, and with `no_provider_healthy` for a service whose lists are not
   * known by then.
   */
  toolsOf(service: string): Promise<readonly DescribedTool[]>;
}

const NAME_MAX = 512;
const LISTED_WITHIN_MS = 5_000;
/** A server that did not answer is asked again at a request after this time at the earliest. */
const UNLISTED_RETRY_S = 10;
/** A service with more tools gets its own turn of the event loop, because a request may name many such services. */
const TOOLS_PER_TURN = 128;
const NEAR_MAX = 1_000;
const SENTENCE_MAX = 200;

interface LocatedTool {
  /** The service as the caller wrote it. */
  readonly target: string;
  readonly tool: string;
  readonly listing: ServiceListing;
}

/** Tools that other routes speak to in parts. Each ask is one `tools/call`, at the same price as for an MCP client. */
export function createToolTarget(deps: ToolTargetDeps): ToolTarget {
  const { catalog, catalogue, limits, bytesMax } = deps;

  function serviceOf(target: string): ServiceListing | null {
    const exact = catalogue.service(target);
    // The name may be pinned to a provider, or may end with a preference for choosing the provider.
    if (exact || !target.includes(':')) return exact;
    try {
      return catalogue.service(catalog.resolve(target, 'tool').service);
    } catch (error) {
      if (error instanceof GatewayError) return null;
      throw error;
    }
  }

  /**
   * Finds a tool by its name, `<service>/<tool>`. The longest known service name at the beginning counts. Null for a
   * name that is not that of a tool.
   */
  function locate(name: string): LocatedTool | null {
    if (name.length > NAME_MAX) return null;
    for (let slash = name.lastIndexOf('/'); slash > 0; slash = name.lastIndexOf('/', slash - 1)) {
      const target = name.slice(0, slash);
      const listing = serviceOf(target);
      if (listing === null) continue;
      const tool = name.slice(slash + 1);
      if (tool === '' || tool.length > TOOL_NAME_MAX) return null;
      const complete = listing.listings.every((one) => one !== null && !one.truncated);
      return listing.tools.has(tool) || !complete ? { target, tool, listing } : null;
    }
    return null;
  }

  function* names(): Generator<string> {
    for (const service of namesToCompare(catalog.offers('tool')))
      for (const tool of catalogue.service(service)?.tools.keys() ?? []) yield `${service}/${tool}`;
  }

  /** Waits for the lists of a service that was never reached. Resolves to null for an unknown service. */
  async function listed(service: string): Promise<ServiceListing | null> {
    const listing = catalogue.service(service);
    if (listing === null || isKnown(listing)) return listing;
    await allWithin(LISTED_WITHIN_MS, [catalogue.tried(service)]);
    return catalogue.service(service);
  }

  function unknown(name: string): GatewayError {
    const hint = nearestHint(name, take(names(), NEAR_MAX)) || 'Names are <service>/<tool>';
    return new GatewayError('invalid_model', `Tool not found: ${printable(name)}. ${hint}`, { param: 'model' });
  }

  return {
    target: {
      primitive: 'tool',
      has: (name) => locate(name) !== null,
      list(limit) {
        const services: { readonly name: string; readonly displayName: string; readonly description: string }[] = [];
        for (const service of namesToCompare(catalog.offers('tool'))) {
          if (services.length >= limit) break;
          const tools = [...(catalogue.service(service)?.tools.values() ?? [])].slice(0, limit - services.length);
          for (const { tool } of tools)
            services.push({
              name: `${service}/${tool.name}`,
              displayName: tool.title ?? tool.name,
              description: sentence(tool.description),
            });
        }
        return services.sort((a, b) => (a.name < b.name ? -1 : 1));
      },
      async about(name) {
        const place = locate(name);
        if (place === null) return null;
        const listing = (await listed(place.listing.service)) ?? place.listing;
        const tool = listing.tools.get(place.tool)?.tool;
        // Resolves the name as the caller wrote it, because a pinned service has the offers of one provider only.
        const { offers } = catalog.resolve(place.target, 'tool');
        return {
          displayName: tool?.title ?? place.tool,
          description: tool?.description ?? '',
          offers: offers.map((offer) => ({ ...offer, price: priceOfTool(offer, place.tool) })),
          inputModes: ['application/json', 'text/plain'],
          outputModes: ['text/plain', 'application/json'],
        };
      },
      async toCall(name, ask, { caller, requestId, traceparent, wantsReceipt }) {
        const place = locate(name);
        if (place === null) throw unknown(name);
        const { target, tool, listing } = place;
        const schema = async () => (await listed(listing.service))?.tools.get(tool)?.tool.inputSchema ?? null;
        const argsText = await callArguments(name, ask, { limits, schema });
        const callId = newCallId();
        const mcpRequest: McpRequest = {
          message: toolsCall(callId, tool, argsText, ask.stream),
          client: 'bare',
          caller,
          requestId,
          callId,
          service: listing.service,
          target,
          rule: LEGACY_METHODS['tools/call']!,
          traceparent,
          wantsReceipt,
          idempotencyKey: null,
          cap: null,
          quote: null,
          payment: null,
          elicitationAction: null,
          events: ask.stream,
          capabilities: {},
          paramHeaders: null,
          session: null,
          continued: null,
          toClient: (text) => text,
        };
        const askedForInput = `The tool ${printable(tool)} asks for input, but this API cannot send input to a tool. Call the tool over MCP, at /mcp/${listing.service}`;
        const options = { progressToken: callId, bytesMax, askedForInput };
        return requestCall(deps, mcpRequest, partsAdapter(new UpstreamAdapter(deps, mcpRequest), options));
      },
    },
    async toolsOf(service) {
      const listing = await listed(service);
      if (listing === null) throw new GatewayError('not_found', `Service not found: ${printable(service)}`);
      // Without its tools, the request would be another one, and its client would pay for it.
      if (!isKnown(listing)) throw unlisted(service);
      // A model's provider refuses the whole request because of one schema that it cannot read.
      if (listing.toolCount > TOOLS_PER_TURN) await ownTurn();
      const usable = [...listing.tools.values()].filter(({ tool }) => tool.texts.legacy !== null);
      return usable.map(({ tool }) => new Described(tool));
    },
  };
}

/** Reads its schema only when it is asked for it. */
class Described implements DescribedTool {
  readonly #tool: ToolEntry;

  constructor(tool: ToolEntry) {
    this.#tool = tool;
  }

  get name(): string {
    return this.#tool.name;
  }

  get description(): string {
    return this.#tool.description;
  }

  inputSchema(): JsonObject {
    return this.#tool.inputSchema ?? { type: 'object' };
  }
}

/** Whether any server of a service was reached. One that was reached may list no tools. */
const isKnown = ({ listings }: ServiceListing): boolean => listings.some((one) => one !== null);

const unlisted = (service: string) =>
  new GatewayError(
    'no_provider_healthy',
    `The tools of ${printable(service)} are not known yet, because no provider of this service has answered. Try again in a few seconds, or leave the service out`,
    { retryAfterS: UNLISTED_RETRY_S },
  );

function toolsCall(id: string, tool: string, argsText: string, progress: boolean): RequestMessage {
  const meta = progress ? `,"_meta":{"progressToken":${JSON.stringify(id)}}` : '';
  const params = `{"name":${JSON.stringify(tool)},"arguments":${argsText}${meta}}`;
  return readOwnRequest(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"tools/call","params":${params}}`);
}

function sentence(text: string): string {
  const first = /^[^]*?[.!?](?=\s|$)/.exec(text.slice(0, SENTENCE_MAX))?.[0] ?? text.slice(0, SENTENCE_MAX);
  return printable(first.replace(/\s+/g, ' ').trim(), SENTENCE_MAX);
}

function* take<T>(all: Iterable<T>, most: number): Generator<T> {
  let count = 0;
  for (const one of all) {
    if (count++ >= most) return;
    yield one;
  }
}

interface CallArgumentsOptions {
  readonly limits: JsonLimits;
  /** The input schema of the tool; null if it is unknown. A function, because it is not always needed. */
  readonly schema: () => Promise<JsonObject | null>;
}

/**
 * The arguments for a tool (JSON text), from what a route says to it: its object of arguments, or else the user's last
 * message. That message is one data part, a JSON object, or the text for a tool with a single text argument. `name` is
 * the tool's name, for errors. Rejects with GatewayError `unprocessable` for any other message, and with
 * `invalid_request` if the JSON has more structure than allowed.
 */
async function callArguments(
  name: string,
  { arguments: args, turns }: TargetRequest,
  { limits, schema }: CallArgumentsOptions,
): Promise<string> {
  if (args !== null) return JSON.stringify(await namedText(args, schema));
  const parts = turns.at(-1)?.parts ?? [];
  if (parts.some(({ kind }) => kind === 'file'))
    throw unprocessable(`${printable(name)} is a tool and does not accept files: ${AS_JSON}`);
  const data = parts.filter((part) => part.kind === 'data');
  if (data.length === 1 && isObject(data[0]!.data)) return JSON.stringify(data[0]!.data);
  const text = textOf(parts);
  if (await isJsonObject(text, limits)) return text;
  const known = await schema();
  if (known === null) throw unprocessable(`The arguments of ${printable(name)} are not known yet: ${AS_JSON}`);
  const filled = text.trim() === '' ? null : onlyText(known);
  // What a model writes for a tool that needs nothing.
  if (filled === null && /^\s*(?:null\s*)?$/.test(text) && requiredOf(known).length === 0) return '{}';
  if (filled === null) throw unprocessable(`${printable(name)} ${printed(known)}`);
  return JSON.stringify({ [filled]: text });
}

/**
 * The arguments, with the name that the tool has for its one text. Models that write one text alone often name it as
 * they like.
 */
async function namedText(
  args: NonNullable<TargetRequest['arguments']>,
  schema: CallArgumentsOptions['schema'],
): Promise<JsonObject> {
  const [entry, ...more] = Object.entries(args);
  if (entry === undefined || more.length > 0 || typeof entry[1] !== 'string') return args;
  const known = await schema();
  if (known === null || Object.hasOwn(propertiesOf(known), entry[0])) return args;
  const only = onlyText(known);
  return only === null ? args : { [only]: entry[1] };
}

const AS_JSON = 'send its arguments as a JSON object';

const unprocessable = (message: string) => new GatewayError('unprocessable', message, { param: 'arguments' });

const textOf = (parts: readonly Part[]): string =>
  parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n');

async function isJsonObject(text: string, limits: JsonLimits): Promise<boolean> {
  if (!/^\s*\{/.test(text)) return false;
  await guardInTurns(Buffer.from(text), limits);
  if (text.length > OWN_TURN_BYTES) await ownTurn();
  try {
    JSON.parse(text);
    return true;
  } catch {
    // Not JSON after all: an ordinary text may begin with a brace.
    return false;
  }
}

/**
 * The property that a text is for: the only required property, or else the only property. Null if there is no such
 * property, or it does not accept a text.
 */
function onlyText(schema: JsonObject): string | null {
  const properties = propertiesOf(schema);
  const names = Object.keys(properties);
  const required = requiredOf(schema).filter((name) => Object.hasOwn(properties, name));
  const only = required.length === 1 ? required[0]! : names.length === 1 ? names[0]! : null;
  if (only === null || required.length > 1) return null;
  const property = properties[only];
  return isObject(property) && property['type'] === 'string' ? only : null;
}

const propertiesOf = ({ properties }: JsonObject): JsonObject => (isObject(properties) ? properties : {});

const requiredOf = ({ required }: JsonObject): readonly string[] =>
  Array.isArray(required) ? [...new Set(required.filter((name): name is string => typeof name === 'string'))] : [];

const SHOWN_MAX = 20;
const SHOWN_CHARS = 64;

/** The arguments that a tool takes, as words for an error. All names and types come from the server. */
function printed(schema: JsonObject): string {
  const properties = Object.entries(propertiesOf(schema));
  if (properties.length === 0) return 'takes no arguments: send {}';
  const required = new Set(requiredOf(schema));
  const list = properties.slice(0, SHOWN_MAX).map(([name, property]) => {
    const type = isObject(property) && typeof property['type'] === 'string' ? property['type'] : 'any';
    return `${printable(JSON.stringify(name), SHOWN_CHARS)}: ${printable(type, SHOWN_CHARS)}${required.has(name) ? ' (required)' : ''}`;
  });
  const more = properties.length > SHOWN_MAX ? `, and ${properties.length - SHOWN_MAX} more` : '';
  return `takes its arguments as a JSON object: {${list.join(', ')}${more}}`;
}
