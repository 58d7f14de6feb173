import type { Seals } from '#security';
import { parseMessage } from '#json-rpc';
import { UpstreamFailure } from '#wire';
import { endOnly, type Pipeline } from '#call';
import { pinned, type Offer } from '#catalog';
import type { HeldCalls } from '../servers/held-calls.ts';
import { createModernToLegacy } from '../translators/modern-to-legacy.ts';
import { createModernToModern } from '../translators/modern-to-modern.ts';
import { createUpstreamSessions } from '../servers/upstream-sessions.ts';
import { createToolCatalogue, type ToolCatalogue, type ToolCatalogueOptions } from '../catalogue/tool-catalogue.ts';
import type { FetchDeps } from '../catalogue/fetch-lists.ts';
import type { ListMethod } from '../shapes/lists.ts';
import { freeEnd } from '../request/ending.ts';
import { type McpFreeCall, OURSELVES, runFreeCall } from '../request/free-call.ts';
import { readOwnRequest, requestText } from '../wire/own-messages.ts';
import { ERROR, META, MODERN, MODERN_METHODS } from '../wire/revisions.ts';
import type { Servers } from '../servers/servers.ts';
import { withoutTaskTools } from '../request/extension.ts';
import type {
  EraTranslator,
  McpEnd,
  McpResponse,
  ServerPlace,
  ServerFacts,
  McpRequest,
} from '../request/mcp-request.ts';

interface OwnCatalogueOptions extends Pick<
  ToolCatalogueOptions,
  'catalog' | 'pins' | 'present' | 'networkOf' | 'now' | 'elapsed' | 'random' | 'onLeftOut'
> {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly servers: Servers;
  readonly held: HeldCalls;
  readonly seals: Seals;
  readonly replyBytesMax: number;
  /** The version of this program, as servers are told it. */
  readonly version: string;
  readonly onUnlisted: ToolCatalogueOptions['onError'];
}

interface OwnCatalogue {
  readonly catalogue: ToolCatalogue;
  drain(): void;
  close(): Promise<void>;
}

/** Short, because a session for reading lists is not needed for the next reading. */
const SESSION_IDLE_MS = 5_000;
/** Most bytes of a page of a list. It is more than the catalogue keeps of all lists of a server. */
const PAGE_BYTES_MAX = 16 * 1024 * 1024;

/**
 * The capabilities that the gateway declares while it lists. Some servers list a tool only to a client with the
 * capabilities that the tool needs. The listing is for all clients, so the gateway declares them all. A server refuses
 * a later call from a client that lacks one. No server asks the gateway anything while it lists, and the gateway would
 * not answer.
 */
const ASKED = { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} } as const;

/**
 * The catalogue of tools, which the gateway reads for itself. It asks the servers behind the offers as a modern client.
 */
export function createOwnCatalogue({ onUnlisted, ...options }: OwnCatalogueOptions): OwnCatalogue {
  const { pipeline, servers, held, seals, version } = options;
  const sessions = createUpstreamSessions({ ...options, idleMs: SESSION_IDLE_MS });
  const replyBytesMax = Math.min(options.replyBytesMax, PAGE_BYTES_MAX);
  const translators = {
    modern: createModernToModern({ seals, replyBytesMax, schemaOf: () => null, version }),
    legacy: createModernToLegacy({ sessions, held, seals, replyBytesMax }),
  };

  const meta = { [META.version]: MODERN, [META.capabilities]: ASKED, [META.clientInfo]: { name: 'tollgate', version } };
  const run = (offer: Offer, method: string, startAttempt: McpFreeCall['startAttempt'], signal: AbortSignal) =>
    runFreeCall(
      pipeline,
      { caller: OURSELVES, requestId: `own-${method}`, target: pinned(offer.id), method, startAttempt },
      signal,
    );

  function requestOf(method: ListMethod, cursor: string | null, { service }: Offer): McpRequest {
    const params = { ...(cursor === null ? {} : { cursor }), _meta: meta };
    const message = readOwnRequest(requestText(`tollgate:${method}`, method, params));
    return {
      message,
      client: 'modern',
      caller: OURSELVES,
      requestId: `own-${method}`,
      callId: `own-${method}`,
      service,
      target: service,
      rule: MODERN_METHODS[method]!,
      traceparent: null,
      wantsReceipt: false,
      idempotencyKey: null,
      cap: null,
      quote: null,
      payment: null,
      elicitationAction: null,
      events: false,
      capabilities: ASKED,
      paramHeaders: {},
      session: null,
      continued: null,
      toClient: (text) => text,
    };
  }

  const lists: FetchDeps = {
    async facts(offer, signal) {
      let facts: ServerFacts | null = null;
      const startAttempt: McpFreeCall['startAttempt'] = (at, send) =>
        endOnly(async () => {
          facts = await servers.facts(at, send);
          return freeEnd(null);
        });
      await run(offer, 'server/discover', startAttempt, signal);
      if (facts === null)
        throw new UpstreamFailure('the server was not reached', { retryable: true, attributedTo: 'provider' });
      return facts;
    },

    async list(offer, method, cursor, signal) {
      const mcpRequest = requestOf(method, cursor, offer);
      let legacy = false;
      const onFacts = ({ era }: ServerFacts) => void (legacy = era === 'legacy');
      const startAttempt: McpFreeCall['startAttempt'] = (at, send, over, detached) =>
        ask({ servers, translators, mcpRequest, onFacts }, { offer: at, send, detached, signal: over });
      const response = await run(offer, method, startAttempt, signal);
      const result = response === null ? null : resultOf(response, method);
      return result !== null && method === 'tools/list' && legacy ? withoutTaskTools(result) : result;
    },
  };

  const catalogue = createToolCatalogue({
    ...lists,
    ...options,
    onError: onUnlisted,
  });
  return {
    catalogue,
    drain() {
      catalogue.close();
      sessions.drain();
    },
    async close() {
      catalogue.close();
      await sessions.close();
    },
  };
}

interface CatalogueRequest {
  readonly servers: Servers;
  readonly translators: Readonly<Record<ServerFacts['era'], EraTranslator>>;
  readonly mcpRequest: McpRequest;
  readonly onFacts: (facts: ServerFacts) => void;
}

async function* ask(
  { servers, translators, mcpRequest, onFacts }: CatalogueRequest,
  at: Omit<ServerPlace, 'facts'>,
): AsyncGenerator<Uint8Array, McpEnd, undefined> {
  const facts = await servers.facts(at.offer, at.send);
  onFacts(facts);
  return yield* translators[facts.era](mcpRequest, { ...at, facts });
}

/**
 * The result, or null if the server has no such list. Throws UpstreamFailure if the server refuses for another reason.
 */
function resultOf({ text }: McpResponse, method: string): string | null {
  const message = parseMessage(text);
  if (message?.kind !== 'response')
    throw new UpstreamFailure(`the answer to ${method} is no response`, { retryable: true, attributedTo: 'provider' });
  if (message.error?.code === ERROR.methodNotFound) return null;
  const result = message.members.get('result');
  if (!result)
    throw new UpstreamFailure(`${method} is refused: ${message.error?.message ?? ''}`, {
      retryable: true,
      attributedTo: 'provider',
    });
  return text.slice(result.start, result.end);
}
