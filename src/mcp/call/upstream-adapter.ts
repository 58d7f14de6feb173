import { elementsOf, inTurns, membersOf, OWN_TURN_BYTES, ownTurn, RawJsonError, splice, UpstreamFailure } from '#wire';
import { errorText, onceOnly } from '#json-rpc';
import type { Call, GeneratedAdapter, Send } from '#call';
import type { Offer } from '#catalog';
import { ownerOf } from '#tasks';
import { clampToMeasured, freeEnd, TASK, tooLargeEnd, providerFailure } from '../request/ending.ts';
import { paramHeaderFault } from '../wire/param-headers.ts';
import { ERROR, modernStatusOf } from '../wire/revisions.ts';
import type { Servers } from '../servers/servers.ts';
import { withoutTaskTools, declaresTasks } from '../request/extension.ts';
import type { ToolCatalogue } from '../catalogue/tool-catalogue.ts';
import { keepTask, type KeepTaskDeps } from '../tasks/keep-task.ts';
import {
  type Admits,
  type ListForm,
  type ListOptions,
  isListMethod,
  type ListMethod,
  listInTurns,
  readableList,
} from '../shapes/lists.ts';
import type { EraTranslator, McpEnd, McpResponse, ServerFacts, McpRequest } from '../request/mcp-request.ts';

export interface UpstreamAdapterDeps {
  readonly keepTask: KeepTaskDeps;
  readonly servers: Servers;
  readonly translators: Readonly<
    Record<'modern' | 'legacy' | 'bare', Readonly<Record<ServerFacts['era'], EraTranslator>>>
  >;
  /** The input schema of a tool; null if it is unknown. */
  readonly schemaOf: (offer: Offer, tool: string) => unknown;
  /** The lists of a server as the gateway has read them; null if they are unknown. */
  readonly listingOf: ToolCatalogue['listingOf'];
  /** Puts prices and pins into the result of a `tools/list`. */
  readonly decorate: (result: string, offer: Offer, mcpRequest: McpRequest) => string;
}

/**
 * The native side of the call of a request. It asks the server which era it speaks, and takes the translator for
 * that.
 */
export class UpstreamAdapter implements GeneratedAdapter<McpResponse | null> {
  readonly endsWithCall: boolean;
  readonly #deps: UpstreamAdapterDeps;
  readonly #mcpRequest: McpRequest;
  #call: Call | null = null;

  constructor(deps: UpstreamAdapterDeps, mcpRequest: McpRequest) {
    const { client, message, capabilities } = mcpRequest;
    this.#deps = deps;
    this.#mcpRequest = mcpRequest;
    this.endsWithCall = !(client === 'modern' && message.method === 'tools/call' && declaresTasks(capabilities));
  }

  begin(prepared: Call): void {
    this.#call = prepared;
  }

  async *startAttempt(
    offer: Offer,
    send: Send,
    signal: AbortSignal,
    detached: Send,
  ): AsyncGenerator<Uint8Array, McpEnd, undefined> {
    const { servers, translators, schemaOf, listingOf, decorate, keepTask: keeping } = this.#deps;
    const mcpRequest = this.#mcpRequest;
    const { message, client } = mcpRequest;
    const call = this.#call!;
    const takesTasks = !this.endsWithCall;
    if (client === 'modern' && mcpRequest.paramHeaders !== null && message.method === 'tools/call') {
      const fault = paramHeaderFault(
        schemaOf(offer, String(message.params?.['name'])),
        message.params?.['arguments'],
        mcpRequest.paramHeaders,
      );
      if (fault) return refusal(mcpRequest, ERROR.headerMismatch, `Header mismatch: ${fault}`);
    }
    if (takesTasks) await keeping.tasks.admit(ownerOf(mcpRequest.caller));
    const facts = await servers.facts(offer, send, signal, mcpRequest.session?.era);
    let end: McpEnd;
    const beganAt = performance.now();
    const askedAt = mcpRequest.continued?.askedAt ?? call.startedAt;
    try {
      end = yield* translators[client][facts.era](mcpRequest, { offer, facts, send, detached, signal, askedAt });
      if (message.method === 'tools/call' && end.finishReason === TASK && end.result !== null) {
        if (!takesTasks || facts.era !== 'modern')
          throw providerFailure('it answered with a task, but the request did not declare support for tasks', null);
        return await keepTask(keeping, mcpRequest, offer, { call, askedAt }, end);
      }
      // The difference can be negative, because another gateway with a faster clock may have asked first.
      end = clampToMeasured(
        end,
        mcpRequest,
        offer,
        Math.max(0, call.startedAt - askedAt) + performance.now() - beganAt,
      );
    } catch (error) {
      if (message.method === 'tools/call' && error instanceof UpstreamFailure && error.tooLarge)
        return tooLargeEnd(mcpRequest, offer, error, performance.now() - beganAt);
      throw message.method === 'tools/call' ? onceOnly(readable(error)) : readable(error);
    }
    if (!isListMethod(message.method)) return end;
    const tasks = client === 'modern' && facts.era === 'modern';
    const decorateTools = (result: string) => decorate(tasks ? result : withoutTaskTools(result), offer, mcpRequest);
    const form = client === 'modern' ? 'modern' : 'legacy';
    const options = {
      admits: admitsFor(mcpRequest, offer),
      sent: message.params?.['cursor'],
      endless: listingOf(offer)?.endless,
    };
    return toReadableList(end, message.method, form, decorateTools, options);
  }
}

/** The elements of a list that the caller's key may use; undefined for all. */
function admitsFor({ caller, message }: McpRequest, { service }: Offer): Admits | undefined {
  const access = caller.key?.access;
  if (!access) return undefined;
  return message.method === 'tools/list'
    ? (tool) => access.allows('tool', service, tool)
    : () => access.allows('tool', service, null);
}

/** An answer that a translator could not parse is a failure of its server. */
function readable(error: unknown): unknown {
  if (!(error instanceof RawJsonError)) return error;
  return new UpstreamFailure(`the provider's answer is not MCP: ${error.message}`, {
    retryable: false,
    attributedTo: 'provider',
    cause: error,
  });
}

function refusal({ message }: McpRequest, code: number, text: string): McpEnd {
  const error = errorText(message.idText, { code, message: text });
  return freeEnd({ text: error, status: modernStatusOf(code) }, `error ${code}`);
}

/**
 * The end of a request for a list, with the elements that clients can read. The definitions of tools are compared with
 * those of the server before anything in them changes. Throws UpstreamFailure for a list that cannot be read, because a
 * server could name other prices in it.
 */
async function toReadableList(
  end: McpEnd,
  method: ListMethod,
  form: ListForm,
  decorateTools: (list: string) => string,
  options: ListOptions,
): Promise<McpEnd> {
  if (end.result === null) return end;
  const { message: _parsed, ...answer } = end.result;
  const isLarge = answer.text.length > OWN_TURN_BYTES;
  if (isLarge) await ownTurn();
  const span = membersOf(answer.text).get('result');
  if (!span) return end;
  const listText = answer.text.slice(span.start, span.end);
  let list;
  try {
    if (method === 'tools/list') refuseTooMany(listText);
    const decorated = method === 'tools/list' ? decorateTools(listText) : listText;
    list = isLarge
      ? await inTurns(listInTurns(method, form, decorated, options))
      : readableList(method, form, decorated, options);
  } catch (error) {
    throw readable(error);
  }
  if ('fault' in list) throw providerFailure(`its answer to ${method} cannot be read: ${list.fault}`, answer.status);
  if (isLarge) await ownTurn();
  return { ...end, result: { ...answer, text: splice(answer.text, [{ ...span, text: list.text }]) } };
}

/** Throws UpstreamFailure for a list of more tools than a client could use. */
function refuseTooMany(result: string): void {
  const tools = membersOf(result).get('tools');
  if (!tools || result[tools.start] !== '[' || elementsOf(result, tools.start, TOOLS_MAX + 1).length <= TOOLS_MAX)
    return;
  throw providerFailure(`it lists more than ${TOOLS_MAX} tools at once`, null);
}

const TOOLS_MAX = 10_000;
