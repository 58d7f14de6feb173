import { isObject, type JsonObject, type ResponseMessage, UpstreamFailure, NEVER_ABORTED } from '#wire';
import { type Offer, readReply, type Send, type UpstreamRequest } from '#gateway';
import { ERROR, META, MODERN, LEGACY } from '../wire/revisions.ts';
import type { Era, ServerFacts } from '../turn/turn.ts';
import { orAbort } from '../turn/or-abort.ts';

/** What is known of the servers behind the offers. A server may speak both eras: then each client meets its own. */
export interface Servers {
  /**
   * What the server is in the era that is preferred, or in the other one where it has no such; asks it where that
   * is not known yet. Throws UpstreamFailure, and the reason of `signal`: nobody waits longer for another's
   * question.
   */
  facts(offer: Offer, send: Send, signal?: AbortSignal, prefers?: Era): Promise<ServerFacts>;
  /** What is known without asking; null for a server that was not asked yet. */
  known(offer: Offer, prefers: Era): ServerFacts | null;
}

export interface ServersOptions {
  /** Of this program, told to servers. */
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
/** Of a reply that is no tool's. */
const FACTS_BYTES_MAX = 1024 * 1024;

export function createServers({ version, replyBytesMax, now }: ServersOptions): Servers {
  const known: Readonly<Record<Era, WeakMap<Offer, Known>>> = { modern: new WeakMap(), legacy: new WeakMap() };
  const bytesMax = Math.min(replyBytesMax, FACTS_BYTES_MAX);
  const clientInfo = { name: 'tollgate', version };

  /** The era that is preferred is asked for first; where the server has it, the other one is not asked for. */
  async function ask(send: Send, prefers: Era): Promise<ServerFacts> {
    const modern = prefers === 'modern' ? await askModern(send) : null;
    if (modern) return modern;
    const legacy = await askLegacy(send).catch((error: unknown) => {
      // A server of the modern era alone may fail at what it does not know.
      if (prefers === 'legacy' && error instanceof UpstreamFailure && (error.status ?? 0) >= 500) return error;
      throw error;
    });
    if ('facts' in legacy) return legacy.facts;
    const other = prefers === 'legacy' ? await askModern(send) : null;
    if (other) return other;
    if (legacy instanceof UpstreamFailure) throw legacy;
    if (legacy.unknownMethod) return BARE;
    const failure = `the provider's server answers neither server/discover nor initialize as MCP says`;
    throw new UpstreamFailure(failure, { status: legacy.status, retryable: true, blame: 'provider', unsent: true });
  }

  async function askModern(send: Send): Promise<ServerFacts | null> {
    const discover = { _meta: { [META.version]: MODERN, [META.capabilities]: {}, [META.clientInfo]: clientInfo } };
    let discovered = await request(send, 'server/discover', discover, MODERN);
    // Only a modern server says so. Where it does speak our revision by its own words, it is asked once more.
    if (
      discovered.answer?.error?.code === ERROR.unsupportedVersion &&
      supports(discovered.answer.error.data, 'supported')
    )
      discovered = await request(send, 'server/discover', discover, MODERN);
    const modern = resultOf(discovered.answer);
    return modern && supports(modern, 'supportedVersions')
      ? toFacts('modern', MODERN, discovered.answer!, modern)
      : null;
  }

  async function askLegacy(
    send: Send,
  ): Promise<{ readonly facts: ServerFacts } | { readonly status: number | null; readonly unknownMethod: boolean }> {
    const initialized = await request(
      send,
      'initialize',
      { protocolVersion: LEGACY[0], capabilities: {}, clientInfo },
      null,
    );
    const legacy = resultOf(initialized.answer);
    const revision = legacy?.['protocolVersion'];
    if (legacy && typeof revision === 'string') {
      if (initialized.session !== null) await leave(send, initialized.session, revision);
      return { facts: toFacts('legacy', revision, initialized.answer!, legacy) };
    }
    return { status: initialized.status, unknownMethod: initialized.answer?.error?.code === ERROR.methodNotFound };
  }

  async function request(send: Send, method: string, params: JsonObject, revision: string | null) {
    const body = JSON.stringify({ jsonrpc: '2.0', id: `tollgate:${method}`, method, params });
    const headers = {
      ...JSON_HEADERS,
      ...(revision === null ? {} : { 'mcp-protocol-version': revision, 'mcp-method': method }),
    };
    const exchange = send({ method: 'POST', path: '', headers, body });
    const reply = await exchange.head;
    const session = reply.headers['mcp-session-id'];
    let answer: ResponseMessage | null = null;
    try {
      for await (const { message } of readReply(reply, bytesMax)) {
        if (message?.kind !== 'response') continue;
        answer = message;
        break;
      }
    } catch (error) {
      // Whatever is no answer says no more than that the method is not known there; a connection that broke says
      // nothing.
      if (!(error instanceof UpstreamFailure) || error.status === null) throw error;
      if (error.status >= 500 || error.status === 401 || error.status === 403 || error.status === 429)
        throw new UpstreamFailure(error.message, {
          status: error.status,
          retryable: true,
          blame: 'provider',
          unsent: true,
          cause: error,
        });
    }
    reply.discard();
    return { answer, status: reply.status, session: typeof session === 'string' ? session : null };
  }

  return {
    async facts(offer, send, signal = NEVER_ABORTED, prefers = 'modern') {
      const of = known[prefers];
      for (;;) {
        const found = of.get(offer);
        if (found && (found.facts === null || now() - found.at < KNOWN_MS)) {
          try {
            return await orAbort(found.asked, signal);
          } catch {
            signal.throwIfAborted();
            // Whoever asked may have left in the middle of it; this call asks for itself.
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

const JSON_HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' } as const;

/** A server that knows neither handshake: the two methods that every tool service has are posted to it as they are. */
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

function toFacts(
  era: ServerFacts['era'],
  revision: string,
  { text, members }: ResponseMessage,
  result: JsonObject,
): ServerFacts {
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

/** Ends a session that was opened to learn of its server. */
async function leave(send: Send, session: string, revision: string): Promise<void> {
  const headers: UpstreamRequest['headers'] = { 'mcp-session-id': session, 'mcp-protocol-version': revision };
  try {
    (await send({ method: 'DELETE', path: '', headers, body: null }).head).discard();
  } catch (error) {
    // Such a session ends by itself.
    if (!(error instanceof UpstreamFailure)) throw error;
  }
}
