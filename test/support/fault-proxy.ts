import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** The faults of one direction. Changes take effect at once, also on open connections. */
export interface Faults {
  /** Delays each chunk by this time. The order is kept. */
  latencyMs: number;
  /** Delivers nothing. The sender only fills the buffers. */
  blackhole: boolean;
  /** Delivers one byte per turn of the event loop. */
  dribble: boolean;
  /**
   * Closes both sockets after this many bytes in this direction, counted from the start of the connection. Exactly
   * these bytes are delivered.
   */
  cutAfterBytes: number | null;
}

/**
 * A TCP proxy on loopback with faults that can change at any time. `up` is from the client to the server, `down` is the
 * other direction.
 */
export interface FaultProxy {
  readonly port: number;
  readonly up: Faults;
  readonly down: Faults;
  /** Accepts connections and closes them at once. */
  refuse: boolean;
  /** Sends RST to both ends of all connections. */
  reset(): void;
  /** Sends FIN in one direction of all connections: this end sends no more, but the other end may continue. */
  halfClose(direction: 'up' | 'down'): void;
  /** Removes all faults. Bytes that a black hole held back are delivered. */
  heal(): void;
  readonly connections: number;
  /** Bytes delivered so far. */
  readonly delivered: { readonly up: number; readonly down: number };
  stop(): Promise<void>;
}

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
}

export async function startFaultProxy(target: { readonly host?: string; readonly port: number }): Promise<FaultProxy> {
  const pairs = new Set<Pair>();
  const up = noFaults();
  const down = noFaults();
  const delivered = { up: 0, down: 0 };
  // Resolves when the faults change. Black holes wait for it.
  let changed = Promise.withResolvers<void>();
  const watch = (faults: Faults): Faults =>
    new Proxy(faults, {
      set(held, name, value) {
        changed.resolve();
        changed = Promise.withResolvers();
        return Reflect.set(held, name, value);
      },
    });

  const proxy = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    if (control.refuse) {
      client.destroy();
      return;
    }
    const server = connect({ host: target.host ?? '127.0.0.1', port: target.port, allowHalfOpen: true, noDelay: true });
    const pair = { client, server };
    pairs.add(pair);
    const end = (): void => {
      pairs.delete(pair);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      socket.on('error', () => {});
      // If both ends have finished, the socket closes normally. If one broke, the other one is closed too.
      socket.on('close', (broken) => {
        if (broken || !(socket === client ? server : client).writable) end();
      });
    }
    void relay(client, server, up, 'up', end);
    void relay(server, client, down, 'down', end);
  });

  async function relay(
    from: Socket,
    to: Socket,
    faults: Faults,
    direction: 'up' | 'down',
    end: () => void,
  ): Promise<void> {
    let passed = 0;
    const deliver = async (bytes: Buffer): Promise<boolean> => {
      while (faults.blackhole) {
        await Promise.race([changed.promise, once(to, 'close')]);
        if (to.destroyed) return false;
      }
      const allowed =
        faults.cutAfterBytes === null
          ? bytes.length
          : Math.min(bytes.length, Math.max(0, faults.cutAfterBytes - passed));
      if (allowed > 0) {
        passed += allowed;
        delivered[direction] += allowed;
        if (!to.write(bytes.subarray(0, allowed))) await Promise.race([once(to, 'drain'), once(to, 'close')]);
      }
      if (faults.cutAfterBytes === null || passed < faults.cutAfterBytes) return !to.destroyed;
      // Waits until the bytes before the cut are written.
      await new Promise((resolve) => to.write('', resolve));
      end();
      return false;
    };
    try {
      // The iterator applies backpressure to the sender, which `data` events wouldn't do. It must not destroy a socket
      // that can still be written to.
      for await (const chunk of from.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        if (faults.latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, faults.latencyMs));
        if (!faults.dribble) {
          if (!(await deliver(chunk))) return;
          continue;
        }
        for (let at = 0; at < chunk.length; at += 1) {
          if (!(await deliver(chunk.subarray(at, at + 1)))) return;
          await new Promise((resolve) => setImmediate(resolve));
        }
      }
      to.end();
    } catch {
      // The socket broke. Its close event ends the pair.
    }
  }

  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const control: FaultProxy = {
    port: (proxy.address() as AddressInfo).port,
    up: watch(up),
    down: watch(down),
    refuse: false,
    reset() {
      for (const { client, server } of pairs) {
        client.resetAndDestroy();
        server.resetAndDestroy();
      }
    },
    halfClose(direction) {
      for (const { client, server } of pairs) (direction === 'up' ? server : client).end();
    },
    heal() {
      Object.assign(control.up, noFaults());
      Object.assign(control.down, noFaults());
      control.refuse = false;
    },
    get connections() {
      return pairs.size;
    },
    delivered,
    async stop() {
      proxy.close();
      for (const { client, server } of pairs) {
        client.destroy();
        server.destroy();
      }
      await once(proxy, 'close');
    },
  };
  return control;
}

function noFaults(): Faults {
  return { latencyMs: 0, blackhole: false, dribble: false, cutAfterBytes: null };
}
