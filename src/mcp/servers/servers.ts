import { isObject, type JsonObject, NEVER_ABORTED, UpstreamFailure } from '#wire';
import type { ResponseMessage } from '#json-rpc';
import type { Offer } from '#catalog';
import { SharedCache } from '#maps';
import type { Send } from '#call';
import { readableFacts } from '../shapes/results.ts';
import { requestText } from '../wire/own-messages.ts';
import { ERROR, META, MODERN, LEGACY, type Era } from '../wire/revisions.ts';
import type { ServerFacts } from '../request/mcp-request.ts';
import { orAbort } from '../request/waiting.ts';
import { firstResponse, leaveServer, POST_HEADERS } from './legacy-server.ts';

/** The servers behind the offers. If a server speaks both eras, each client uses its own era. */
export interface Servers {
  /**
   * Facts of the server in the preferred era, or in the other era if the server does not speak the preferred one. Asks
   * the server if the facts are not known yet. Throws UpstreamFailure. Throws the reason of `signal` if it aborts while
   * another call asks the server.
   */
  facts(offer: Offer, send: Send, signal?: AbortSignal, prefers?: Era): Promise<ServerFacts>;
  /** Facts that are known already; null if the server has not been asked. */
  known(offer: Offer, prefers: Era): ServerFacts | null;
}

interface ServersOptions {
  readonly version: string;
  readonly replyBytesMax: number;
  readonly now: () => number;
  /** The network that the provider of an offer dials from; null if it is not known. Default: none is known. */
  readonly networkOf?: ((offer: Offer) => string | null) | undefined;
}

interface CachedFacts {
  /** A provider that registers again has new offers, which are asked at once. */
  readonly offer: Offer;
  readonly answer: Promise<ServerFacts>;
  readonly at: number;
  facts: ServerFacts | null;
}

/** Facts expire, because a server may be replaced by a newer one at the same address. */
const KNOWN_MS = 5 * 60_000;

/** Of the facts of all servers, which networks of providers share. */
const ALL_BYTES_MAX = 32 * 1024 * 1024;
/** The parsed facts take as much as their text, and a letter may take two bytes. */
const BYTES_OF_LETTER = 4;

export function createServers({ version, replyBytesMax, now, networkOf = () => null }: ServersOptions): Servers {
  const cache = new SharedCache<CachedFacts>(ALL_BYTES_MAX);
  const keyOf = ({ id }: Offer, era: Era) => `${era} ${id}`;
  const cached = (offer: Offer, era: Era) => {
    const entry = cache.get(keyOf(offer, era));
    return entry?.offer === offer ? entry : undefined;
  };
  const keep = (entry: CachedFacts, era: Era) => {
    const { offer, facts } = entry;
    const bytes = BYTES_OF_LETTER * (facts?.text.length ?? 0);
    cache.set(keyOf(offer, era), entry, bytes, networkOf(offer) ?? offer.provider.id);
  };
  const forget = (entry: CachedFacts, era: Era) => {
    if (cached(entry.offer, era) === entry) cache.delete(keyOf(entry.offer, era));
  };
  const ask = createAsk(version, Math.min(replyBytesMax, FACTS_BYTES_MAX));

  return {
    async facts(offer, send, signal = NEVER_ABORTED, prefers = 'modern') {
      for (;;) {
        const entry = cached(offer, prefers);
        if (entry && (entry.facts === null || now() - entry.at < KNOWN_MS)) {
          if (entry.facts !== null) return entry.facts;
          try {
            return await orAbort(entry.answer, signal);
          } catch {
            signal.throwIfAborted();
            // The call that asked may have been cancelled. So this call asks itself.
            forget(entry, prefers);
            continue;
          }
        }
        const question: CachedFacts = { offer, answer: ask(send, prefers), at: now(), facts: null };
        keep(question, prefers);
        try {
          const facts = await question.answer;
          question.facts = facts;
          if (cached(offer, prefers) === question) keep(question, prefers);
          // The server was asked for both eras.
          if (facts.era !== prefers || facts.bare) keep(question, prefers === 'modern' ? 'legacy' : 'modern');
          return facts;
        } catch (error) {
          forget(question, prefers);
          throw error;
        }
      }
    },
    known: (offer, prefers) => cached(offer, prefers)?.facts ?? null,
  };
}

const FACTS_BYTES_MAX = 1024 * 1024;

/**
 * Asks a server for the preferred era first. Asks for the other era only if the server does not speak the preferred
 * one.
 */
function createAsk(version: string, bytesMax: number): (send: Send, prefers: Era) => Promise<ServerFacts> {
  const clientInfo = { name: 'tollgate', version };

  async function askModern(send: Send): Promise<ServerFacts | null> {
    const discover = { _meta: { [META.version]: MODERN, [META.capabilities]: {}, [META.clientInfo]: clientInfo } };
    let { answer } = await request(send, 'server/discover', discover, MODERN, bytesMax);
    // Only a modern server sends this error. If the error lists our revision as supported, the server is asked once
    // more.
    if (answer?.error?.code === ERROR.unsupportedVersion && supports(answer.error.data, 'supported'))
      ({ answer } = await request(send, 'server/discover', discover, MODERN, bytesMax));
    const result = resultOf(answer);
    return result && supports(result, 'supportedVersions') ? toFacts('modern', MODERN, answer!, result) : null;
  }

  async function askLegacy(send: Send): Promise<ServerFacts | ServerRefusal> {
    const initialize = { protocolVersion: LEGACY[0], capabilities: {}, clientInfo };
    const { answer, unread, status, upstreamId } = await request(send, 'initialize', initialize, null, bytesMax);
    const result = resultOf(answer);
    const revision = result?.['protocolVersion'];
    if (!result || typeof revision !== 'string')
      return { status, unread, unknownMethod: answer?.error?.code === ERROR.methodNotFound };
    await leaveServer(send, { upstreamId, revision }).catch((error: unknown) => {
      // The session was opened only to ask the server, and it expires there anyway.
      if (!(error instanceof UpstreamFailure)) throw error;
    });
    return toFacts('legacy', revision, answer!, result);
  }

  return async (send, prefers) => {
    const modern = prefers === 'modern' ? await askModern(send) : null;
    if (modern) return modern;
    const legacy = await askLegacy(send).catch((error: unknown) => {
      // A server that is only modern may fail at a method that it does not know.
      if (prefers === 'legacy' && error instanceof UpstreamFailure && (error.status ?? 0) >= 500) return error;
      throw error;
    });
    if ('era' in legacy) return legacy;
    const other = prefers === 'legacy' ? await askModern(send) : null;
    if (other) return other;
    if (legacy instanceof UpstreamFailure) throw legacy;
    if (legacy.unknownMethod) return BARE;
    const { status, unread } = legacy;
    const failure =
      status !== null && status >= 300 && status < 400
        ? `the provider's server redirects this address (status ${status}), and redirects are not followed`
        : `the provider's server answers neither server/discover nor initialize as MCP says`;
    throw new UpstreamFailure(failure, {
      status,
      replyText: unread,
      retryable: true,
      attributedTo: 'provider',
      unsent: true,
    });
  };
}

interface ServerRefusal {
  readonly status: number | null;
  readonly unread: string | null;
  readonly unknownMethod: boolean;
}

/**
 * Asks a server about itself. `answer` is null if the reply has no JSON-RPC response: `unread` has its first words.
 * Throws UpstreamFailure.
 */
async function request(send: Send, method: string, params: JsonObject, revision: string | null, bytesMax: number) {
  const headers = {
    ...POST_HEADERS,
    ...(revision === null ? {} : { 'mcp-protocol-version': revision, 'mcp-method': method }),
  };
  const body = requestText(`tollgate:${method}`, method, params);
  const reply = await send({ method: 'POST', path: '', headers, body }).head;
  const session = reply.headers['mcp-session-id'];
  let answer: ResponseMessage | null = null;
  let unread: string | null = null;
  try {
    answer = await firstResponse(reply, bytesMax);
  } catch (error) {
    // An unreadable answer means that the server does not know the method. A broken connection means nothing.
    if (!(error instanceof UpstreamFailure) || error.status === null) throw error;
    const { message, status } = error;
    unread = error.replyText;
    if (status >= 500 || status === 401 || status === 403 || status === 429)
      throw new UpstreamFailure(message, {
        ...error.providerFacts,
        retryable: true,
        attributedTo: 'provider',
        unsent: true,
        cause: error,
      });
  }
  return { answer, unread, status: reply.status, upstreamId: typeof session === 'string' ? session : null };
}

/**
 * A server that knows neither handshake. The gateway posts only the two methods that every tool service has, without
 * envelope and session.
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
  const factsText = readableFacts(text.slice(start, end), result);
  const { capabilities } = JSON.parse(factsText) as JsonObject;
  return { era, revision, bare: false, text: factsText, capabilities: isObject(capabilities) ? capabilities : {} };
}

const supports = (value: unknown, key: string) =>
  isObject(value) && Array.isArray(value[key]) && value[key].includes(MODERN);

const resultOf = (answer: ResponseMessage | null): JsonObject | null =>
  isObject(answer?.result) ? answer.result : null;
