import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect as connectTls } from 'node:tls';
import type { Node } from '../registry/registry.ts';
import type { Peers } from '../tunnel/tunnels.ts';
import { keepAlive, peerKey, SESSION_OPTIONS, SILENCE_MS, TLS_OPTIONS, type PeerKey } from './peer-link.ts';

export interface PeersOptions {
  /** Shared by the gateways of one database. */
  readonly secret: Buffer;
  /**
   * Called when a connection to another gateway failed or broke, and then not again until one succeeds. The streams of
   * the connection have failed. The next use opens a new one.
   */
  readonly onError?: (node: Node, error: Error) => void;
  /** Timeout for opening a connection. */
  readonly connectMs?: number;
  /** The connection to a gateway that answers no pings for this time is closed. */
  readonly silenceMs?: number;
}

/**
 * Connections to the other gateways. Each gateway has one, which stays open until it breaks. A session accepts streams
 * while it connects. They fail if the connection fails. The handshake proves that the peer knows the secret, but not
 * that it is the intended gateway. A wrong gateway refuses the stream, because it does not have the tunnel.
 */
export function createPeers({ secret, onError, connectMs = 5_000, silenceMs = SILENCE_MS }: PeersOptions): Peers {
  const key = peerKey(secret);
  const sessions = new Map<string, ClientHttp2Session>();
  /** Gateways whose failure was reported. Calls that wait for a missing gateway retry many times a second. */
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
      // A session is `closed` when its peer shuts down. Such a peer finishes running streams but refuses new ones.
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
        // There are no certificates. Both ends prove that they know the key.
        checkServerIdentity: () => undefined,
      }),
  });
}
