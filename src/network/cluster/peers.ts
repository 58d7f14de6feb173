import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect as connectTls } from 'node:tls';
import type { Node } from '../registry/registry.ts';
import type { Peers } from '../tunnel/tunnels.ts';
import { keepAlive, peerKey, SESSION_OPTIONS, SILENCE_MS, TLS_OPTIONS, type PeerKey } from './peer-link.ts';

export interface PeersOptions {
  /** Shared by the gateways of one database. */
  readonly secret: Buffer;
  /**
   * A connection to another gateway could not be made, or broke: told once, until one is made again. Its streams
   * have failed; the next use connects anew.
   */
  readonly onError?: (node: Node, error: Error) => void;
  /** Longest wait for a connection. */
  readonly connectMs?: number;
  /** A gateway that answers no pings this long is given up. */
  readonly silenceMs?: number;
}

/**
 * Connections to the other gateways: one each, kept until it breaks. A session that is still connecting takes
 * streams; they fail with it. That the far end knows the secret is proven, that it is the gateway that was meant is
 * not: it refuses connections that it does not hold.
 */
export function createPeers({ secret, onError, connectMs = 5_000, silenceMs = SILENCE_MS }: PeersOptions): Peers {
  const key = peerKey(secret);
  const sessions = new Map<string, ClientHttp2Session>();
  /** Calls that wait for a gateway that is gone try many times a second. */
  const failing = new Set<string>();
  let closing = false;

  const open = (node: Node): ClientHttp2Session => {
    const session = connect(node.url, key);
    const late = setTimeout(() => session.destroy(new Error(`no connection within ${connectMs} ms`)), connectMs);
    session.once('connect', () => {
      clearTimeout(late);
      failing.delete(node.url);
      keepAlive(session, { silenceMs });
    });
    session.on('error', (error) => {
      if (!failing.has(node.url)) onError?.(node, error);
      failing.add(node.url);
    });
    session.once('close', () => {
      clearTimeout(late);
      if (sessions.get(node.url) === session) sessions.delete(node.url);
    });
    return session;
  };

  return {
    session(node) {
      if (closing) throw new Error('this gateway is closing its connections to others');
      const known = sessions.get(node.url);
      // A far end that is about to stop lets running streams end and takes no new ones.
      if (known && !known.closed && !known.destroyed) return known;
      const session = open(node);
      sessions.set(node.url, session);
      return session;
    },
    async close() {
      closing = true;
      await Promise.all(
        [...sessions.values()].map(
          (session) =>
            new Promise<void>((resolve) => {
              session.once('close', resolve);
              session.destroy();
            }),
        ),
      );
    },
  };
}

function connect(url: string, { identity, key }: PeerKey): ClientHttp2Session {
  const { hostname, port } = new URL(url);
  return connectHttp2(url, {
    ...SESSION_OPTIONS,
    createConnection: () =>
      connectTls({
        ...TLS_OPTIONS,
        ALPNProtocols: [...TLS_OPTIONS.ALPNProtocols],
        host: hostname.replace(/^\[|\]$/g, ''),
        port: Number(port || 443),
        pskCallback: () => ({ identity, psk: key }),
        // There are no certificates: both ends prove that they know the key.
        checkServerIdentity: () => undefined,
      }),
  });
}
