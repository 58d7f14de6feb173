import { isObject, type JsonObject, NEVER_ABORTED, type ResponseMessage, UpstreamFailure } from '#wire';
import type { Offer, Send } from '#gateway';
import { requestText } from '../wire/own-messages.ts';
import { ERROR, META, MODERN, LEGACY } from '../wire/revisions.ts';
import type { Era, ServerFacts } from '../turn/turn.ts';
import { orAbort } from '../turn/waiting.ts';
import { firstResponse } from './first-response.ts';
import { leaveServer } from './legacy-server.ts';
import { POST_HEADERS } from './post-headers.ts';

/** The servers behind the offers. A server may speak both eras: then each client meets its own. */
export interface Servers {
  /**
   * Facts of the server in the preferred era, or in the other one where it does not speak that. Asks the server where
   * they are not known yet. Throws UpstreamFailure, and the reason of `signal`: nobody waits longer for another's
   * question.
   */
  facts(offer: Offer, send: Send, signal?: AbortSignal, prefers?: Era): Promise<ServerFacts>;
  /** Facts that are known without asking; null for a server that was not asked yet. */
  known(offer: Offer, prefers: Era): ServerFacts | null;
}

interface ServersOptions {
  /** Version of this program, told to servers. */
  readonly version: string;
  readonly replyBytesMax: number;
  readonly now: () => number;
}

interface Known {
  readonly asked: Promise<ServerFacts>;
  readonly at: number;
  facts: ServerFacts | null;
}

/**
 * A server may be replaced by a newer one at the same address; a provider that registers anew has new offers and is
 * asked at once.
 */
const KNOWN_MS = 5 * 60_000;

export function createServers({ version, replyBytesMax, now }: ServersOptions): Servers {
  const known: Readonly<Record<Era, WeakMap<Offer, Known>>> = { modern: new WeakMap(), legacy: new WeakMap() };
  const ask = createAsk(version, Math.min(replyBytesMax, FACTS_BYTES_MAX));

  return {
    async facts(offer, send, signal = NEVER_ABORTED, prefers = 'modern') {
      const of = known[prefers];
      for (;;) {
        const found = of.get(offer);
        if (found && (found.facts === null || now() - found.at < KNOWN_MS)) {
          if (found.facts !== null) return found.facts;
          try {
            return await orAbort(found.asked, signal);
          } catch {
            signal.throwIfAborted();
            // The call that asked may have been left in the middle of it; this call asks for itself.
            if (of.get(offer) === found) of.delete(offer);
            continue;
          }
        }
        const asked: Known = { asked: ask(send, prefers), at: now(), facts: null };
        of.set(offer, asked);
        try {
          const facts = await asked.asked;
          asked.facts = facts;
          // It was asked for both.
          if (facts.era !== prefers || facts.bare) known[prefers === 'modern' ? 'legacy' : 'modern'].set(offer, asked);
          return facts;
        } catch (error) {
          if (of.get(offer) === asked) of.delete(offer);
          throw error;
        }
      }
    },
    known: (offer, prefers) => known[prefers].get(offer)?.facts ?? null,
  };
}

/** Longest answer to `server/discover` or `initialize`. */
const FACTS_BYTES_MAX = 1024 * 1024;

/** Asks a server for the preferred era first, and for the other one only where it does not speak that. */
function createAsk(version: string, bytesMax: number): (send: Send, prefers: Era) => Promise<ServerFacts> {
  const clientInfo = { name: 'tollgate', version };

  async function askModern(send: Send): Promise<ServerFacts | null> {
    const discover = { _meta: { [META.version]: MODERN, [META.capabilities]: {}, [META.clientInfo]: clientInfo } };
    let { answer } = await request(send, 'server/discover', discover, MODERN, bytesMax);
    // Only a modern server says so. Where it does speak our revision by its own words, it is asked once more.
    if (answer?.error?.code === ERROR.unsupportedVersion && supports(answer.error.data, 'supported'))
      ({ answer } = await request(send, 'server/discover', discover, MODERN, bytesMax));
    const result = resultOf(answer);
    return result && supports(result, 'supportedVersions') ? toFacts('modern', MODERN, answer!, result) : null;
  }

  /** Facts of a legacy server, or how it refused `initialize`. */
  async function askLegacy(send: Send): Promise<ServerFacts | Refusal> {
    const initialize = { protocolVersion: LEGACY[0], capabilities: {}, clientInfo };
    const { answer, status, upstreamId } = await request(send, 'initialize', initialize, null, bytesMax);
    const result = resultOf(answer);
    const revision = result?.['protocolVersion'];
    if (!result || typeof revision !== 'string')
      return { status, unknownMethod: answer?.error?.code === ERROR.methodNotFound };
    await leaveServer(send, { upstreamId, revision }).catch((error: unknown) => {
      // A session that was opened to learn of its server ends by itself, too.
      if (!(error instanceof UpstreamFailure)) throw error;
    });
    return toFacts('legacy', revision, answer!, result);
  }

  return async (send, prefers) => {
    const modern = prefers === 'modern' ? await askModern(send) : null;
    if (modern) return modern;
    const legacy = await askLegacy(send).catch((error: unknown) => {
      // A server of the modern era alone may fail at a method that it does not know.
      if (prefers === 'legacy' && error instanceof UpstreamFailure && (error.status ?? 0) >= 500) return error;
      throw error;
    });
    if ('era' in legacy) return legacy;
    const other = prefers === 'legacy' ? await askModern(send) : null;
    if (other) return other;
    if (legacy instanceof UpstreamFailure) throw legacy;
    if (legacy.unknownMethod) return BARE;
    const failure = `the provider's server answers neither server/discover nor initialize as MCP says`;
    throw new UpstreamFailure(failure, { status: legacy.status, retryable: true, blame: 'provider', unsent: true });
  };
}

interface Refusal {
  readonly status: number | null;
  readonly unknownMethod: boolean;
}

/** Asks a server about itself. `answer`: null where it is not a JSON-RPC response. Throws UpstreamFailure. */
async function request(send: Send, method: string, params: JsonObject, revision: string | null, bytesMax: number) {
  const headers = {
    ...POST_HEADERS,
    ...(revision === null ? {} : { 'mcp-protocol-version': revision, 'mcp-method': method }),
  };
  const body = requestText(`tollgate:${method}`, method, params);
  const reply = await send({ method: 'POST', path: '', headers, body }).head;
  const session = reply.headers['mcp-session-id'];
  let answer: ResponseMessage | null = null;
  try {
    answer = await firstResponse(reply, bytesMax);
  } catch (error) {
    // An answer that cannot be read says that the method is not known; a connection that broke says nothing.
    if (!(error instanceof UpstreamFailure) || error.status === null) throw error;
    const { message, status } = error;
    if (status >= 500 || status === 401 || status === 403 || status === 429)
      throw new UpstreamFailure(message, { status, retryable: true, blame: 'provider', unsent: true, cause: error });
  }
  return { answer, status: reply.status, upstreamId: typeof session === 'string' ? session : null };
}

/**
 * A server that knows neither handshake: the two methods that every tool service has are posted to it as they are.
 */
const BARE: ServerFacts = {
  era: 'legacy',
  revision: LEGACY[0],
  bare: true,
  text: JSON.stringify({
    protocolVersion: LEGACY[0],
    capabilities: { tools: {} },
    serverInfo: { name: 'tools', version: '0' },
  }),
  capabilities: { tools: {} },
};

function toFacts(era: Era, revision: string, { text, members }: ResponseMessage, result: JsonObject): ServerFacts {
  const { start, end } = members.get('result')!;
  const { capabilities } = result;
  return {
    era,
    revision,
    bare: false,
    text: text.slice(start, end),
    capabilities: isObject(capabilities) ? capabilities : {},
  };
}

const supports = (value: unknown, key: string) =>
  isObject(value) && Array.isArray(value[key]) && value[key].includes(MODERN);

const resultOf = (answer: ResponseMessage | null): JsonObject | null =>
  isObject(answer?.result) ? answer.result : null;
