import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** Files that ran before in this process may still have connections that come back: they are not of the test. */
const ofTest = new AsyncLocalStorage<readonly string[]>();

/** Every address that the test tries to connect to from now until its end, however it does it. */
export function watchConnectionAttempts(): readonly string[] {
  const attempts: string[] = [];
  ofTest.enterWith(attempts);
  const onSocket = (message: unknown) => {
    const { socket } = message as { readonly socket: Socket };
    if (ofTest.getStore() === attempts) socket.on('connectionAttempt', (address: string) => attempts.push(address));
  };
  subscribe('net.client.socket', onSocket);
  onTestFinished(() => void unsubscribe('net.client.socket', onSocket));
  return attempts;
}
