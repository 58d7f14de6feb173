import { GatewayError, type JsonLimits, type JsonObject, parseMessage, printable, type RequestMessage } from '#wire';
import { type Catalog, newCallId, nearestHint, type Speaker } from '#gateway';
import type { ServiceListing } from '../../catalogue/merge-listings.ts';
import type { ToolCatalogue } from '../../catalogue/tool-catalogue.ts';
import { LEGACY_METHODS } from '../../wire/revisions.ts';
import { priceOfTool } from '../../turn/tool-price.ts';
import { callArguments } from './call-arguments.ts';
import { partsConversation } from './parts-conversation.ts';
import { TOOL_NAME_MAX, turnCall, type TurnCallDeps } from '../turn-call.ts';
import type { Turn } from '../../turn/turn.ts';

export interface ToolSpeakerDeps extends TurnCallDeps {
  readonly catalog: Pick<Catalog, 'resolve'>;
  readonly catalogue: Pick<ToolCatalogue, 'services' | 'service' | 'tried'>;
  readonly limits: JsonLimits;
  /** Longest event of a server. */
  readonly bytesMax: number;
}

/** A tool as whoever writes a prompt needs it. All of it is its server's word. */
export interface SpokenTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
}

export interface ToolSpeaker {
  /** The tools of all services, each by `<service>/<tool>`. */
  readonly speaker: Speaker;
  /**
   * The tools of a service, as its servers list them; those of a service that was never reached once it was asked,
   * or some seconds went by. Rejects with GatewayError `not_found`.
   */
  toolsOf(service: string): Promise<readonly SpokenTool[]>;
}

/** Of a pinned service's and its tool's. */
const NAME_MAX = 512;
const LISTED_WITHIN_MS = 5_000;
/** Names that a misspelt one is compared with. */
const NEAR_MAX = 1_000;
const SENTENCE_MAX = 200;

/** Where a name leads. */
interface Place {
  /** The service, as the caller wrote it. */
  readonly target: string;
  readonly tool: string;
  readonly listing: ServiceListing;
}

/** Tools spoken to in parts: each ask is one `tools/call`, which costs what it costs a client of MCP. */
export function createToolSpeaker(deps: ToolSpeakerDeps): ToolSpeaker {
  const { catalog, catalogue, limits, bytesMax } = deps;

  function serviceOf(target: string): ServiceListing | null {
    const exact = catalogue.service(target);
    // A provider's service, or one with a word on how its provider is chosen.
    if (exact || !target.includes(':')) return exact;
    try {
      return catalogue.service(catalog.resolve(target, 'tool').service);
    } catch (error) {
      if (error instanceof GatewayError) return null;
      throw error;
    }
  }

  /** The longest service that there is has the name; the rest is its tool's. */
  function locate(name: string): Place | null {
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
    for (const service of catalogue.services())
      for (const tool of catalogue.service(service)?.tools.keys() ?? []) yield `${service}/${tool}`;
  }

  /** Waits for the lists of a service that was never reached. */
  async function listed(service: string): Promise<ServiceListing | null> {
    const listing = catalogue.service(service);
    if (listing === null || listing.listings.some((one) => one !== null)) return listing;
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, LISTED_WITHIN_MS);
    await Promise.race([catalogue.tried(service), late.promise]);
    clearTimeout(timer);
    return catalogue.service(service);
  }

  function unknown(name: string): GatewayError {
    const hint = nearestHint(name, take(names(), NEAR_MAX)) || 'Names are <service>/<tool>';
    return new GatewayError('invalid_model', `Tool not found: ${printable(name)}. ${hint}`, { param: 'model' });
  }

  return {
    speaker: {
      primitive: 'tool',
      has: (name) => locate(name) !== null,
      list(limit) {
        const found: { readonly name: string; readonly displayName: string; readonly description: string }[] = [];
        for (const service of catalogue.services()) {
          if (found.length >= limit) break;
          const tools = [...(catalogue.service(service)?.tools.values() ?? [])].slice(0, limit - found.length);
          for (const { tool } of tools)
            found.push({
              name: `${service}/${tool.name}`,
              displayName: tool.title ?? tool.name,
              description: sentence(tool.description),
            });
        }
        return found.sort((a, b) => (a.name < b.name ? -1 : 1));
      },
      async about(name) {
        const place = locate(name);
        if (place === null) return null;
        const listing = (await listed(place.listing.service)) ?? place.listing;
        const tool = listing.tools.get(place.tool)?.tool;
        // A pinned service is one provider's.
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
        const given = await callArguments(name, ask, { limits, schema });
        const callId = newCallId();
        const turn: Turn = {
          message: toolsCall(callId, tool, given, ask.stream),
          client: 'bare',
          caller,
          callId,
          service: listing.service,
          events: ask.stream,
          capabilities: {},
          paramHeaders: null,
          session: null,
          continued: null,
          toClient: (text) => text,
        };
        const call = turnCall(
          deps,
          { rule: LEGACY_METHODS['tools/call']!, requestId, traceparent, wantsReceipt, target },
          turn,
        );
        const askedForInput = `The tool ${printable(tool)} asks for input, which cannot be given to it here: call it as MCP, at /mcp/${listing.service}`;
        return {
          ...call,
          exchange: partsConversation(call.exchange, { progressToken: callId, bytesMax, askedForInput }),
        };
      },
    },
    async toolsOf(service) {
      const listing = await listed(service);
      if (listing === null) throw new GatewayError('not_found', `Service not found: ${printable(service)}`);
      return [...listing.tools.values()].map(({ tool }) => ({
        name: tool.name,
        description: tool.description,
        inputSchema: tool.inputSchema ?? { type: 'object' },
      }));
    },
  };
}

function toolsCall(id: string, tool: string, given: string, progress: boolean): RequestMessage {
  const meta = progress ? `,"_meta":{"progressToken":${JSON.stringify(id)}}` : '';
  const params = `{"name":${JSON.stringify(tool)},"arguments":${given}${meta}}`;
  const message = parseMessage(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"tools/call","params":${params}}`);
  if (message?.kind !== 'request') throw new Error('a request of the gateway is a request');
  return message;
}

/** The first sentence of a description. */
function sentence(text: string): string {
  const first = /^[^]*?[.!?](?=\s|$)/.exec(text.slice(0, SENTENCE_MAX))?.[0] ?? text.slice(0, SENTENCE_MAX);
  return printable(first.replace(/\s+/g, ' ').trim(), SENTENCE_MAX);
}

function* take<T>(all: Iterable<T>, most: number): Generator<T> {
  let taken = 0;
  for (const one of all) {
    if (taken++ >= most) return;
    yield one;
  }
}
