import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { GatewayError } from '#errors';
import { MESSAGE_SOCKET_OPTIONS, MessageSocket } from './message-socket.ts';

interface SocketServerOptions {
  /** The largest message that is read, in bytes. A larger one closes the socket with 1009. */
  readonly messageBytesMax: number;
  /** The subprotocol that is chosen, if a client offers it. */
  readonly protocol: string;
  readonly stallMs: number;
  readonly silenceMs: number;
}

/** Completes the handshakes of WebSockets that are read as messages. */
interface SocketServer {
  /** Rejects with GatewayError `invalid_request` for a handshake that is not valid. */
  accept(request: IncomingMessage, wire: Socket, head: Buffer): Promise<MessageSocket>;
}

/** `ws` is loaded with the first handshake. */
export function createSocketServer({ messageBytesMax, protocol, ...times }: SocketServerOptions): SocketServer {
  const open = async () => {
    const { WebSocketServer } = await import('ws');
    return new WebSocketServer({
      ...MESSAGE_SOCKET_OPTIONS,
      noServer: true,
      clientTracking: false,
      maxPayload: messageBytesMax,
      handleProtocols: (offered) => (offered.has(protocol) ? protocol : false),
    });
  };
  let server: ReturnType<typeof open> | null = null;
  return {
    async accept(request, wire, head) {
      const sockets = await (server ??= open());
      return new Promise((resolve, reject) => {
        const failed = (error: Error, faulty: unknown) => {
          if (faulty !== wire) return;
          sockets.off('wsClientError', failed);
          reject(new GatewayError('invalid_request', `The WebSocket handshake is not valid: ${error.message}`));
        };
        sockets.on('wsClientError', failed);
        sockets.handleUpgrade(request, wire, head, (socket) => {
          sockets.off('wsClientError', failed);
          resolve(new MessageSocket(socket, times, wire));
        });
      });
    },
  };
}
