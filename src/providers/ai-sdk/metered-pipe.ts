import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { createBudget } from '#wire/budgets';
import { createFrameMeter, FRAME_BUDGET, MeteredBytes } from '#wire/frame-meter';

type PipeCallback = (error?: Error | null) => void;

/**
 * Bytes that may wait in memory for the process before its session here feels it. Two sessions of which each waits for
 * the other to read would stand still, as in `socket-stream.ts` of the tunnel. Flow control keeps most of them away.
 */
const SEND_BUFFER_BYTES_MAX = 8 * 1024 * 1024;

/**
 * A pipe to the process of a package, for an HTTP/2 session here. The frames of the process are metered. It sends
 * `prefaceBytes` before them. `flooded`: it sent some that no package needs, or far too many tiny ones; the words go on
 * after its name.
 */
export function meteredPipe(pipe: Socket, prefaceBytes: number, flooded: (why: string) => void): Duplex {
  const stream = new Duplex({
    // What waits here was metered before, and would be read in one turn.
    readableHighWaterMark: 1,
    read: () => metered.more(),
    write: (chunk: Buffer, _encoding, done) => send(chunk, done),
    writev(writes: { readonly chunk: Buffer }[], done) {
      pipe.cork();
      for (const { chunk } of writes.slice(0, -1)) pipe.write(chunk);
      send(writes.at(-1)!.chunk, done);
      pipe.uncork();
    },
    final: (done) => void pipe.end(done),
    destroy(error, done) {
      pipe.destroy();
      done(error);
    },
  });
  const send = (chunk: Buffer, done: PipeCallback) => {
    if (pipe.writableLength + chunk.byteLength > SEND_BUFFER_BYTES_MAX) return void pipe.write(chunk, done);
    pipe.write(chunk);
    done();
  };
  const metered = new MeteredBytes({
    meter: createFrameMeter(createBudget(FRAME_BUDGET), { prefaceBytes }),
    pass: (bytes) => stream.push(bytes),
    pause: () => void pipe.pause(),
    resume: () => void pipe.resume(),
    flooded,
  });
  pipe.on('data', (bytes: Buffer) => metered.take(bytes));
  pipe.on('end', () => void stream.push(null));
  pipe.on('close', () => void stream.destroy());
  pipe.on('error', (error) => void stream.destroy(error));
  return stream;
}
