import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { createFrameBudget, createFrameMeter, MeteredBytes } from '#wire';

type Done = (error?: Error | null) => void;

/**
 * Bytes that may wait in memory for the process before its session here feels it. Two sessions of which each waits for
 * the other to read would stand still, as in `socket-stream.ts` of the tunnel. Flow control keeps most of them away.
 */
const SEND_BUFFER_BYTES_MAX = 8 * 1024 * 1024;

/**
 * A pipe to the process of a package, for an HTTP/2 session here. The frames of the process are metered. `flooded`: it
 * sent so many tiny ones that no package needs as many; the words go on after its name.
 */
export function meteredPipe(pipe: Socket, flooded: (why: string) => void): Duplex {
  let isFull = false;
  const stream = new Duplex({
    read() {
      isFull = false;
      if (!metered.isHeld) pipe.resume();
    },
    write: (chunk: Buffer, _encoding, done) => send(chunk, done),
    writev(writes: { readonly chunk: Buffer }[], done) {
      pipe.cork();
      for (const { chunk } of writes.slice(0, -1)) pipe.write(chunk);
      send(writes.at(-1)!.chunk, done);
      pipe.uncork();
    },
    final: (done) => void pipe.end(done),
    destroy(error, done) {
      metered.drop();
      pipe.destroy();
      done(error);
    },
  });
  const send = (chunk: Buffer, done: Done) => {
    if (pipe.writableLength + chunk.byteLength > SEND_BUFFER_BYTES_MAX) return void pipe.write(chunk, done);
    pipe.write(chunk);
    done();
  };
  const metered = new MeteredBytes({
    meter: createFrameMeter(createFrameBudget()),
    pass(bytes) {
      isFull = !stream.push(bytes);
      if (isFull) pipe.pause();
    },
    pause: () => void pipe.pause(),
    resume: () => void (isFull || pipe.resume()),
    flooded,
  });
  pipe.on('data', (bytes: Buffer) => metered.take(bytes));
  pipe.on('end', () => void stream.push(null));
  pipe.on('close', () => void stream.destroy());
  pipe.on('error', (error) => void stream.destroy(error));
  return stream;
}
