import type { LookupAddress } from 'node:dns';
import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import { type Socket, connect as connectPlain, isIP, type LookupFunction } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { lookup, Resolver } from 'node:dns/promises';
import { callbackify } from 'node:util';
import type { buildConnector, Client } from 'undici';
import { GatewayError } from '#errors';
import { isPublicAddress, hostOf, outboundUrlFault } from '#security';
import { CodingFault, contentCoding, readBounded } from '#wire';
import { skipInterimReplies } from '#wire/undici';

interface GuardedRequest {
  /** Default GET. */
  readonly method?: 'GET' | 'HEAD' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Timeout for lookup, connection, head and body together. */
  readonly timeoutMs: number;
  /** A longer body is a failure. 0: the body is ignored. */
  readonly bodyBytesMax: number;
  /** Called with the bytes of memory that the body needs, before it needs them. May throw GatewayError. */
  readonly takeMemory?: (bytes: number) => void;
  readonly signal?: AbortSignal;
}

interface GuardedReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Decoded if it came in a content coding that is known. */
  readonly body: Buffer;
}

/**
 * Fetches a URL. Rejects with OutboundFailure, with the reason of the signal if it was aborted, or with an error of
 * `takeMemory`. Redirects are not followed, but returned as replies.
 */
export type GuardedFetch = (url: string, request: GuardedRequest) => Promise<GuardedReply>;

interface GuardedFetchOptions {
  /** For development: also permits http, any port, and private addresses. */
  readonly allowPrivate: boolean;
  readonly lookup?: OutboundLookup;
  /** Whether an address may be connected to. Default: public addresses, or all with `allowPrivate`. */
  readonly permits?: (address: string) => boolean;
}

/**
 * An untrusted URL gave no reply. The message names no address. `refused`: the gateway does not call this URL, so a
 * retry is useless.
 */
export class OutboundFailure extends Error {
  override readonly name = 'OutboundFailure';
  readonly refused: boolean;
  constructor(
    message: string,
    { refused = false, cause }: { readonly refused?: boolean; readonly cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.refused = refused;
  }
}

const HEAD_BYTES_MAX = 16 * 1024;

/**
 * Calls untrusted URLs, such as those of webhooks, pictures and cards, without giving access to private networks
 * (SSRF). Every call opens a new connection and checks its address.
 */
export function createGuardedFetch({ allowPrivate, ...options }: GuardedFetchOptions): GuardedFetch {
  const guard = guardOf({ allowPrivate, ...options });

  return async (text, { timeoutMs, signal, ...request }) => {
    const fault = outboundUrlFault(text, { allowPrivate });
    if (fault !== null) throw new OutboundFailure(`the URL ${fault}`, { refused: true });
    const call = createCall(new URL(text), guard);
    const stopped = Promise.withResolvers<never>();
    const timer = setTimeout(() => stopped.reject(new OutboundFailure('there was no reply in time')), timeoutMs);
    const forward = () => stopped.reject(signal?.reason);
    signal?.addEventListener('abort', forward, { once: true });
    if (signal?.aborted) forward();
    try {
      return await Promise.race([stopped.promise, call.send(request)]);
    } catch (error) {
      if (error instanceof OutboundFailure || error instanceof GatewayError) throw error;
      if (error instanceof CodingFault) throw new OutboundFailure(`the body of the reply is ${error.message}`);
      if (signal?.aborted && error === signal.reason) throw error;
      throw new OutboundFailure('its address could not be reached, or the connection broke off', { cause: error });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', forward);
      call.end();
    }
  };
}

/**
 * A connector of undici for addresses that nobody of this machine wrote. Each connection of its pool is guarded. The
 * URL itself is checked by `outboundUrlFault` before.
 */
export function createGuardedConnector(options: GuardedFetchOptions): buildConnector.connector {
  const guard = guardOf(options);
  const connect = async ({ hostname, port, protocol }: buildConnector.Options): Promise<Socket> => {
    const secure = protocol === 'https:';
    const host = hostname.replace(/^\[|\]$/g, '');
    const addresses = await permittedAddresses(host, guard);
    const socket = guardedConnect({ host, port: Number(port || (secure ? 443 : 80)), secure, addresses }, guard);
    // undici closes a socket only once it has it.
    const late = setTimeout(() => socket.destroy(new OutboundFailure('there was no connection in time')), CONNECT_MS);
    try {
      await once(socket, secure ? 'secureConnect' : 'connect');
    } finally {
      clearTimeout(late);
    }
    // The guard may have destroyed the socket in this event.
    if (socket.errored) throw socket.errored;
    return socket;
  };
  return callbackify(connect) as unknown as buildConnector.connector;
}

const CONNECT_MS = 10_000;

const guardOf = ({ allowPrivate, lookup: customLookup, permits }: GuardedFetchOptions): Guard => ({
  lookup: customLookup ?? (allowPrivate ? lookupHere : createPublicLookup()),
  permits: permits ?? (allowPrivate ? () => true : isPublicAddress),
});

/** One exchange on its own connection. `end` releases everything, at any stage. */
function createCall(url: URL, guard: Guard) {
  let socket: Socket | null = null;
  let client: Client | null = null;
  let over = false;

  const connectTo =
    (addresses: readonly LookupAddress[]): buildConnector.connector =>
    (_options, done) => {
      const secure = url.protocol === 'https:';
      const connection = guardedConnect(
        { host: hostOf(url), port: Number(url.port || (secure ? 443 : 80)), secure, addresses },
        guard,
      );
      socket = connection;
      const failed = (error: Error) => done(error, null);
      connection.once('error', failed);
      connection.once(secure ? 'secureConnect' : 'connect', () => {
        connection.off('error', failed);
        // The guard may have destroyed the socket in this event.
        if (connection.errored) failed(connection.errored);
        else done(null, connection);
      });
    };

  return {
    async send({
      method = 'GET',
      headers = {},
      body,
      bodyBytesMax,
      takeMemory = () => {},
    }: Omit<GuardedRequest, 'timeoutMs' | 'signal'>): Promise<GuardedReply> {
      const addresses = await permittedAddresses(hostOf(url), guard);
      // Loaded on first use, because many gateways never need it.
      const undici = await import('undici');
      if (over) throw new OutboundFailure('the call is over');
      client = skipInterimReplies(
        new undici.Client(url.origin, {
          pipelining: 0,
          maxHeaderSize: HEAD_BYTES_MAX,
          // The timeout above covers the whole call.
          headersTimeout: 0,
          bodyTimeout: 0,
          connect: connectTo(addresses),
        }),
      );
      const path = `${url.pathname}${url.search}`;
      const sent = { ...contentCoding.none, 'user-agent': 'tollgate', ...headers };
      const reply = await client.request({ method, path, headers: sent, body: body ?? null });
      const bytes = await readBody(reply.body, reply.headers, bodyBytesMax, takeMemory);
      return { status: reply.statusCode, headers: reply.headers, body: bytes };
    },
    end() {
      over = true;
      // The client would wait for a socket that is still connecting, so the socket is destroyed too.
      socket?.on('error', () => {});
      socket?.destroy();
      client?.destroy().catch(() => {});
    },
  };
}

async function readBody(
  body: AsyncIterable<Uint8Array> & { on(event: 'error', listener: () => void): unknown },
  headers: IncomingHttpHeaders,
  bytesMax: number,
  takeMemory: (bytes: number) => void,
): Promise<Buffer> {
  if (bytesMax === 0) {
    // The body fails when its connection closes. The error is ignored.
    body.on('error', () => {});
    return Buffer.alloc(0);
  }
  const tooLong = () => new OutboundFailure(`the reply has more than ${bytesMax} bytes`);
  const coding = contentCoding.codingOf(headers['content-encoding']);
  if (coding !== null && contentCoding.isKnown(coding))
    return readBounded(counted(contentCoding.decoded(body, coding), takeMemory), bytesMax, tooLong);
  const length = Number(headers['content-length'] ?? NaN);
  if (!Number.isSafeInteger(length)) return readBounded(counted(body, takeMemory), bytesMax, tooLong);
  body.on('error', () => {});
  if (length > bytesMax) throw tooLong();
  takeMemory(length);
  const whole = Buffer.allocUnsafeSlow(length);
  let received = 0;
  for await (const chunk of body) {
    if (received + chunk.byteLength > length) throw tooLong();
    whole.set(chunk, received);
    received += chunk.byteLength;
  }
  return whole.subarray(0, received);
}

/** Chunks count twice, because the chunks and the whole body are in memory together at the end. */
async function* counted(
  body: AsyncIterable<Uint8Array>,
  takeMemory: (bytes: number) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of body) {
    takeMemory(2 * chunk.byteLength);
    yield chunk;
  }
}

interface Guard {
  readonly permits: (address: string) => boolean;
  readonly lookup: OutboundLookup;
}

/** The addresses of a host. Rejects with OutboundFailure if any of them is not permitted. */
async function permittedAddresses(host: string, { permits, lookup }: Guard): Promise<readonly LookupAddress[]> {
  const family = isIP(host);
  const addresses = family === 0 ? await lookup(host) : [{ address: host, family }];
  if (addresses.length === 0 || !addresses.every(({ address }) => permits(address))) throw refusal();
  return addresses;
}

interface GuardedTarget {
  /** A name or an address, without brackets. */
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  /** The result of `permittedAddresses` for the host. */
  readonly addresses: readonly LookupAddress[];
}

/**
 * Connects to one of the checked addresses without another DNS lookup, so that a name with changing answers (DNS
 * rebinding) gains nothing. The address of the open connection is checked once more.
 */
function guardedConnect({ host, port, secure, addresses }: GuardedTarget, { permits }: Guard): Socket {
  const lookup: LookupFunction = (_name, { all }, callback) => {
    const [first] = addresses;
    if (all) callback(null, [...addresses]);
    else callback(null, first!.address, first!.family);
  };
  const options = { host, port, lookup, autoSelectFamily: true, noDelay: true };
  const servername = isIP(host) === 0 ? host : '';
  const socket = secure ? connectTls({ ...options, servername, ALPNProtocols: ['http/1.1'] }) : connectPlain(options);
  socket.once('connect', () => {
    if (!permits(socket.remoteAddress ?? '')) socket.destroy(refusal());
  });
  return socket;
}

const refusal = () => new OutboundFailure('the address is not one of the public internet', { refused: true });

/** All addresses of a host name. Rejects if it has none. */
export type OutboundLookup = (name: string) => Promise<readonly LookupAddress[]>;

/** Looks up with the resolver of this machine, which uses the hosts file and search domains. */
const lookupHere: OutboundLookup = (name) => lookup(name, { all: true });

const TIMEOUT_MS = 2_500;
const TRIES = 2;

interface PublicLookupOptions {
  /** Addresses of name servers, with a port if it is not 53. Default: those of this machine. */
  readonly servers?: readonly string[];
}

/**
 * Looks up by name servers alone. An untrusted name is not searched in this machine's hosts file or search domains. A
 * name whose servers never answer does not occupy a thread of the pool, which the file system needs.
 */
export function createPublicLookup({ servers }: PublicLookupOptions = {}): OutboundLookup {
  return async (name) => {
    const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
    if (servers) resolver.setServers(servers);
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const addresses = [
      ...(v4.status === 'fulfilled' ? v4.value.map((address) => ({ address, family: 4 })) : []),
      ...(v6.status === 'fulfilled' ? v6.value.map((address) => ({ address, family: 6 })) : []),
    ];
    if (addresses.length === 0) throw v4.status === 'rejected' ? v4.reason : new Error('the name has no address');
    return addresses;
  };
}
