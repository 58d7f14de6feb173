import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { GatewayError } from '#errors';
import { networkLevels, networkOf, type Trust } from '#security';
import { Shares } from '#wire';
import type { NetworkBudgets } from '#wire/budgets';
import { refuseUpgrade } from './upgrades.ts';

/**
 * Shares the connections to a server among the networks of its clients, so that idle connections of one network do not
 * use up the sockets of the process. A trusted proxy stands for many clients, so it may have all that are free. A
 * connection beyond a share is answered and closed. So is one of a network that has spent its budget of small `chunks`:
 * closing it at its first chunks would cost twenty times as much.
 */
export function shareConnections(server: Server, max: number, trust: Trust | undefined, chunks: NetworkBudgets): void {
  const shares = new Shares(max, max, networkLevels);
  server.on('connection', (socket: Socket) => {
    const { remoteAddress: address } = socket;
    // A socket of the file system, or a client that is gone.
    if (address === undefined) return;
    const network = networkOf(address);
    const isProxy = trust?.(address) === true;
    if (isProxy ? shares.all >= max : !shares.mayTake(network))
      return refuseUpgrade(socket, refusal(shares.amountOf(network)), randomUUID());
    if (!isProxy && chunks.isSpent(network)) return refuseUpgrade(socket, tooManyChunks(), randomUUID());
    shares.take(network);
    socket.once('close', () => shares.leave(network));
  });
}

const refusal = (held: number): GatewayError =>
  held === 0
    ? new GatewayError('service_unavailable', 'All connections to this gateway are in use: retry in a moment', {
        retryAfterS: 1,
      })
    : new GatewayError(
        'rate_limit_exceeded',
        `Your network has ${held} connections to this gateway, which is the share that it and the networks around it have of limits.connections_max: use them again, or close some`,
        { retryAfterS: 1 },
      );

const tooManyChunks = (): GatewayError =>
  new GatewayError(
    'rate_limit_exceeded',
    'Your network sends bodies in too many small chunks: send larger ones, or the whole with content-length',
    { retryAfterS: 1 },
  );
