import { hash } from 'node:crypto';
import { GatewayError, GatewayStopping } from '#errors';
import { isObject, type JsonObject, Shares } from '#wire';
import { TransientMap } from '#maps';
import type { Offer } from '#catalog';
import { openSession, type SessionClient, createUpstreamSession, type UpstreamSession } from './upstream-session.ts';
import type { StreamHeads } from './server-stream.ts';
import { META } from '../wire/revisions.ts';
import { withoutTaskMembers } from '../request/extension.ts';
import type { ServerPlace, McpRequest } from '../request/mcp-request.ts';
import { allWithin } from '../request/waiting.ts';

/** Sessions at legacy servers that the gateway opens for clients without a session. Never shared between accounts. */
export interface UpstreamSessions {
  /**
   * The session for the request's account and offer, and what its client declares. Opens it if it does not exist yet.
   * Throws UpstreamFailure, GatewayError.
   */
  sessionOf(mcpRequest: McpRequest, place: ServerPlace): Promise<UpstreamSession>;
  /** Forgets a session that the server no longer knows, so that the next request opens another. */
  lost(session: UpstreamSession): void;
  readonly size: number;
  /**
   * Called when the gateway stops. Ends unused sessions at once, while their servers can be reached, and the others
   * after their use.
   */
  drain(): void;
  close(): Promise<void>;
}

export interface UpstreamSessionsOptions {
  readonly version: string;
  readonly replyBytesMax: number;
  /** How long an unused session is kept. Default 5 min. */
  readonly idleMs?: number;
  /** Most sessions of one account. Default 100. */
  readonly perAccountMax?: number;
  /** Most sessions in all. Default 10,000. */
  readonly max?: number;
}

interface PooledSession {
  readonly key: string;
  readonly account: string;
  readonly opening: Promise<UpstreamSession>;
  session: UpstreamSession | null;
  idle: NodeJS.Timeout | null;
  streamIdle: NodeJS.Timeout | undefined;
}

/**
 * How long the stream of an unused session stays open. It is short, because each stream takes a connection to its
 * server.
 */
const STREAM_IDLE_MS = 10_000;
const CLOSE_MS = 2_000;

export function createUpstreamSessions(options: UpstreamSessionsOptions): UpstreamSessions {
  const { version, replyBytesMax, idleMs = 5 * 60_000, perAccountMax = 100, max = 10_000 } = options;
  /** By key; the least recently used session comes first. */
  const entries = new TransientMap<string, PooledSession>();
  const shares = new Shares(max, perAccountMax);
  const heads = new WeakMap<Offer, StreamHeads>();
  let draining = false;
  let closed = false;

  function forget(entry: PooledSession): void {
    if (entries.get(entry.key) !== entry) return;
    entries.delete(entry.key);
    shares.leave(entry.account);
    stopTimers(entry);
  }

  function end(entry: PooledSession): void {
    forget(entry);
    void entry.session?.end();
  }

  /**
   * Ends an unused session if the account has its share, its own if it has any. Throws GatewayError if all are in use.
   */
  function makeRoom(account: string): void {
    if (shares.mayTake(account)) return;
    const held = shares.amountOf(account);
    for (const entry of entries.values()) {
      if (entry.idle === null || (held > 0 && entry.account !== account)) continue;
      return end(entry);
    }
    const again = { retryAfterS: 1 };
    const most = `This account uses ${held} sessions at MCP servers, which is its share`;
    if (held > 0) throw new GatewayError('rate_limit_exceeded', most, again);
    throw new GatewayError('service_unavailable', 'Too many sessions at MCP servers are in use', again);
  }

  async function open(
    entry: () => PooledSession,
    { facts, detached, offer }: ServerPlace,
    client: SessionClient,
  ): Promise<UpstreamSession> {
    const { revision, capabilities } = facts;
    const session = facts.bare ? { upstreamId: null, revision, capabilities } : await openSession(detached, client);
    return createUpstreamSession({
      ...session,
      send: detached,
      bytesMax: replyBytesMax,
      heads: headsOf(offer),
      onEntered: () => stopTimers(entry()),
      onLeft: () => release(entry()),
      onLost: () => forget(entry()),
    });
  }

  /** An offer that is registered anew is another object, and is learnt anew. */
  function headsOf(offer: Offer): StreamHeads {
    const known = heads.get(offer) ?? { late: false };
    heads.set(offer, known);
    return known;
  }

  function release(entry: PooledSession): void {
    if (entries.get(entry.key) !== entry) {
      entry.session?.closeStream();
      return;
    }
    entry.streamIdle = setTimeout(() => entry.session?.closeStream(), Math.min(STREAM_IDLE_MS, idleMs)).unref();
    // The turns that waited for the session to open enter it right after this, and stop the timer.
    entry.idle = setTimeout(end, draining ? 0 : idleMs, entry).unref();
  }

  return {
    sessionOf(mcpRequest, place) {
      if (closed) throw new GatewayStopping();
      const client = clientOf(mcpRequest, version);
      const { account } = mcpRequest.caller;
      const key = hash('sha256', JSON.stringify([account, place.offer.id, client]));
      const pooled = entries.get(key);
      if (pooled) {
        entries.delete(key);
        entries.set(key, pooled);
        return pooled.opening;
      }
      makeRoom(account);
      const opening = open(() => entry, place, client);
      const entry: PooledSession = { key, account, opening, session: null, idle: null, streamIdle: undefined };
      entries.set(key, entry);
      shares.take(account);
      opening.then(
        (session) => {
          entry.session = session;
          if (entries.get(key) !== entry) void session.end();
          // The request that opened the session may have ended meanwhile.
          else if (entry.idle === null) release(entry);
        },
        () => forget(entry),
      );
      return opening;
    },
    lost(session) {
      session.closeStream();
      for (const entry of entries.values()) if (entry.session === session) return forget(entry);
    },
    get size() {
      return entries.size;
    },
    drain() {
      draining = true;
      for (const entry of entries.values()) if (entry.idle !== null) end(entry);
    },
    async close() {
      closed = true;
      const ends = [...entries.values()].map(async (entry) => {
        forget(entry);
        await entry.session?.end();
      });
      await allWithin(CLOSE_MS, ends);
    },
  };
}

function stopTimers(entry: PooledSession): void {
  if (entry.idle) clearTimeout(entry.idle);
  clearTimeout(entry.streamIdle);
  entry.idle = null;
}

function clientOf({ message, client, capabilities }: McpRequest, version: string): SessionClient {
  const meta = message.params?.['_meta'];
  const name = client === 'modern' && isObject(meta) ? meta[META.clientInfo] : null;
  return {
    capabilities: client === 'modern' ? legacyCapabilities(capabilities) : {},
    clientInfo: isObject(name) ? name : { name: 'tollgate', version },
  };
}

/**
 * The client's capabilities for a legacy session. Such a session carries no tasks, and a modern client never reports
 * that its roots changed.
 */
function legacyCapabilities(capabilities: JsonObject): JsonObject {
  const { roots, ...rest } = withoutTaskMembers(capabilities);
  if (!isObject(roots)) return rest;
  const { listChanged: _listChanged, ...others } = roots;
  return { ...rest, roots: others };
}
