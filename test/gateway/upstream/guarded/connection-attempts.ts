import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** Every address that this process tries to connect to from now until the end of the test, however it does it. */
export function watchConnectionAttempts(): readonly string[] {
  const attempts: string[] = [];
  const onSocket = (message: unknown) => {
    const { socket } = message as { readonly socket: Socket };
    socket.on('connectionAttempt', (address: string) => attempts.push(address));
  };
  subscribe('net.client.socket', onSocket);
  onTestFinished(() => void unsubscribe('net.client.socket', onSocket));
  return attempts;
}
