import { GatewayError, type JsonLimits, type JsonObject, parseMessage, printable, type RequestMessage } from '#wire';
import { type Catalog, newCallId, nearestHint, type TargetAdapter } from '#gateway';
import type { ToolCatalogue } from '../../catalogue/tool-catalogue.ts';
import { LEGACY_METHODS } from '../../wire/revisions.ts';
import { priceOfTool } from '../../request/tool-price.ts';
import { callArguments } from './call-arguments.ts';
import { createToolLookup } from './tool-lookup.ts';
import { partsAdapter } from './parts-adapter.ts';
import { requestCall, type RequestCallDeps } from '../request-call.ts';
import type { McpRequest } from '../../request/mcp-request.ts';

interface ToolTargetDeps extends RequestCallDeps {
  readonly catalog: Pick<Catalog, 'resolve'>;
  readonly catalogue: Pick<ToolCatalogue, 'services' | 'service' | 'tried'>;
  readonly limits: JsonLimits;
  /** Most bytes of one event of a server. */
  readonly bytesMax: number;
}

/** The facts about a tool that a prompt needs. All its texts come from the server. */
interface DescribedTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
}

export interface ToolTarget {
  /** The tools of all services, each named `<service>/<tool>`. */
  readonly target: TargetAdapter;
  /**
   * The tools of a service, as its servers list them. If the service was never reached, waits some seconds for its
   * lists. Rejects with GatewayError `not_found`.
   */
  toolsOf(service: string): Promise<readonly DescribedTool[]>;
}

/** Most names that a wrong name is compared with. */
const NEAR_MAX = 1_000;
const SENTENCE_MAX = 200;

/** Tools that other routes speak to in parts. Each ask is one `tools/call`, at the same price as for an MCP client. */
export function createToolTarget(deps: ToolTargetDeps): ToolTarget {
  const { catalog, catalogue, limits, bytesMax } = deps;
  const { locate, listed, names } = createToolLookup(deps);

  function unknown(name: string): GatewayError {
    const hint = nearestHint(name, take(names(), NEAR_MAX)) || 'Names are <service>/<tool>';
    return new GatewayError('invalid_model', `Tool not found: ${printable(name)}. ${hint}`, { param: 'model' });
  }

  return {
    target: {
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
        const given = await callArguments(name, ask, { limits, schema });
        const callId = newCallId();
        const mcpRequest: McpRequest = {
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
        const call = requestCall(
          deps,
          { rule: LEGACY_METHODS['tools/call']!, requestId, traceparent, wantsReceipt, target },
          mcpRequest,
        );
        const askedForInput = `The tool ${printable(tool)} asks for input, but this API cannot send input to a tool. Call the tool over MCP, at /mcp/${listing.service}`;
        return {
          ...call,
          exchange: partsAdapter(call.exchange, { progressToken: callId, bytesMax, askedForInput }),
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
