import type { ClientHttp2Session } from 'node:http2';
import type { GatewayError } from '#wire';
import type { AdmittedProviders } from '#config';
import type { Connection, Node } from '../registry/registry.ts';
import type { RegistrationProblem } from './wire.ts';

/** The part of an HTTP/2 session that a call needs. */
export type CallSession = Pick<ClientHttp2Session, 'request' | 'closed' | 'destroyed'>;

/** The proxies that are connected to this gateway. */
export interface Tunnels {
  /**
   * The session for calls to the proxy of a connection. null if the connection is not here, has registered nothing yet,
   * or is ending.
   */
  session(connection: string): CallSession | null;
  /** For metrics: the number of proxies that have registered here, and of running calls through them. */
  count(): { readonly connections: number; readonly streams: number };
  /**
   * Replaces the list of providers that may connect. The others that are connected get no new calls, and may end those
   * that run.
   */
  admitOnly(providers: AdmittedProviders): void;
  /** Tells every proxy to dial elsewhere, lets running calls finish within `drainMs`, then closes the rest. */
  close(drainMs: number): Promise<void>;
}

/** Events of connections, for the log and metrics. Methods return at once and never throw. */
export interface TunnelObserver {
  /** A dial was refused. `error` was sent to the proxy. */
  readonly rejected?: (error: GatewayError, address: string) => void;
  /** A proxy was authenticated. It has registered nothing yet. */
  readonly connected?: (connection: Connection, address: string) => void;
  readonly registered?: (connection: Connection, of: { readonly services: number; readonly revision: number }) => void;
  readonly refused?: (connection: Connection, message: string, problems: readonly RegistrationProblem[]) => void;
  /** A newer connection of the provider took over. `left` follows. */
  readonly replaced?: (connection: Connection) => void;
  /** The proxy accepts no new calls. Running calls go on. */
  readonly draining?: (connection: Connection) => void;
  readonly left?: (connection: Connection, why: string) => void;
  /** A registration could not be stored. The tunnel was closed, and the proxy will dial again. */
  readonly failed?: (connection: Connection, error: unknown) => void;
}

/** The other gateways of the same database. */
export interface Peers {
  /**
   * The HTTP/2 session to another gateway. It is opened at first use, and again after it broke. The other gateway
   * forwards each stream, unchanged, into the tunnel that CONNECTION_HEADER names.
   */
  session(node: Node): ClientHttp2Session;
  close(): Promise<void>;
}

/** Header on a stream between two gateways: the id of the connection that the stream is for. */
export const CONNECTION_HEADER = 'x-tollgate-connection';

/** Header on a stream between two gateways: the requested file and the range of bytes. */
export const FILE_HEADER = 'x-tollgate-file';

/**
 * Value of PROXY_FAILURE_HEADER in the 404 of a gateway that does not have the connection, because it ended or the
 * gateway was restarted. The request was not forwarded.
 */
export const UNKNOWN_CONNECTION = 'unknown_connection';
