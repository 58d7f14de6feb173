import type { ClientHttp2Session } from 'node:http2';
import type { GatewayError } from '#wire';
import type { Connection, Node } from '../registry/registry.ts';
import type { RegistrationProblem } from './wire.ts';

/** The part of an HTTP/2 session that a call needs. */
export type CallSession = Pick<ClientHttp2Session, 'request' | 'closed' | 'destroyed'>;

/** The proxies that are connected to this gateway. */
export interface Tunnels {
  /** For calls to the proxy of a connection; null when it is not here, has registered nothing yet, or is ending. */
  session(connection: string): CallSession | null;
  /** For metrics: proxies that have registered here, and calls that run through them. */
  count(): { readonly connections: number; readonly streams: number };
  /** Tells every proxy to dial elsewhere, lets running calls end within `drainMs`, closes the rest. */
  close(drainMs: number): Promise<void>;
}

/** Events of connections, for the log and metrics. Methods return at once and never throw. */
export interface TunnelObserver {
  /** A dial was answered with an error. `error` is what the proxy was told. */
  readonly rejected?: (error: GatewayError, address: string) => void;
  /** A proxy is who it says it is. It has registered nothing yet. */
  readonly connected?: (connection: Connection, address: string) => void;
  readonly registered?: (connection: Connection, of: { readonly services: number; readonly revision: number }) => void;
  readonly refused?: (connection: Connection, message: string, problems: readonly RegistrationProblem[]) => void;
  /** A newer connection of the provider took over. `left` follows. */
  readonly replaced?: (connection: Connection) => void;
  /** The proxy takes no new calls; its running ones go on. */
  readonly draining?: (connection: Connection) => void;
  readonly left?: (connection: Connection, why: string) => void;
  /** A registration could not be stored. The proxy was sent away and will be back. */
  readonly failed?: (connection: Connection, error: unknown) => void;
}

/** The other gateways of the same database. */
export interface Peers {
  /**
   * The HTTP/2 session to another gateway, made at first use and again after it broke. A stream on it is passed on
   * into the tunnel that CONNECTION_HEADER names: same path, same body, same reply.
   */
  session(node: Node): ClientHttp2Session;
  close(): Promise<void>;
}

/** On a stream between two gateways: the id of the connection that it is for. */
export const CONNECTION_HEADER = 'x-tollgate-connection';

/** On a stream between two gateways: the file that is asked for, and which bytes of it. */
export const FILE_HEADER = 'x-tollgate-file';

/**
 * Value of PROXY_FAILURE_HEADER in the 404 of a gateway that does not hold the connection: it ended, or the gateway
 * was started anew. Nothing was sent on.
 */
export const UNKNOWN_CONNECTION = 'unknown_connection';
