/**
 * The mock upstream: handwritten HTTP/1.1 over node:net with prepared replies, so that it is faster than any gateway in
 * front of it. It answers a POST according to the model's name in the body, a POST to /mcp as an MCP server, and a POST
 * to /a2a as an agent. Prints `{"port":n}` when it listens.
 */
import { createServer, type Socket } from 'node:net';
import { A2A_PATH, a2aReply, CARD_PATH } from './a2a-replies.ts';
import { MCP_PATH, mcpReply } from './mcp-replies.ts';
import {
  BURST,
  MODELS,
  PACED_EVENT,
  PACED_EVENTS,
  PACE_MS,
  SHORT,
  SMALL,
  STREAM_END,
  STREAM_START,
} from './replies.ts';
import { wireReply } from './wire-replies.ts';

/** The running streams, distributed over slots, so that they don't all send in the same millisecond. */
const SLOTS = 10;
const slots: Set<{ socket: Socket; left: number }>[] = Array.from({ length: SLOTS }, () => new Set());
let tick = 0;
let joins = 0;

setInterval(() => {
  // If the timer is late, it catches up, so that a stream takes the right time on a busy machine.
  for (const now = Math.floor(performance.now() / (PACE_MS / SLOTS)); tick < now; tick++) {
    const slot = slots[tick % SLOTS]!;
    for (const stream of slot) {
      if (--stream.left > 0) stream.socket.write(PACED_EVENT);
      else {
        stream.socket.write(STREAM_END);
        slot.delete(stream);
      }
    }
  }
}, PACE_MS / SLOTS);
tick = Math.floor(performance.now() / (PACE_MS / SLOTS));

function answer(socket: Socket, request: string): void {
  if (request.startsWith(`POST ${MCP_PATH} `)) return void socket.write(mcpReply(request), 'latin1');
  if (request.startsWith(`POST ${A2A_PATH} `) || request.startsWith(`GET ${CARD_PATH} `))
    return void socket.write(a2aReply(request), 'latin1');
  const at = request.indexOf('"bench-');
  const model = at < 0 ? '' : request.slice(at + 1, request.indexOf('"', at + 1));
  switch (model) {
    case MODELS.burst:
      socket.cork();
      for (const write of BURST) socket.write(write);
      socket.uncork();
      return;
    case MODELS.short:
      for (const write of SHORT) socket.write(write);
      return;
    case MODELS.paced: {
      socket.write(STREAM_START);
      const slot = slots[joins++ % SLOTS]!;
      const stream = { socket, left: PACED_EVENTS - 3 };
      slot.add(stream);
      socket.once('close', () => slot.delete(stream));
      return;
    }
    case MODELS.wire:
      return void socket.write(wireReply(request));
    case MODELS.open:
      socket.write(STREAM_START);
      return;
    default:
      socket.write(SMALL);
  }
}

const server = createServer({ noDelay: true }, (socket) => {
  let pending = '';
  socket.on('data', (bytes) => {
    pending = pending ? pending + bytes.toString('latin1') : bytes.toString('latin1');
    for (;;) {
      const head = pending.indexOf('\r\n\r\n');
      if (head < 0) return;
      const end = bodyEnd(pending, head + 4);
      if (end < 0) return;
      answer(socket, pending.slice(0, end));
      pending = pending.slice(end);
      if (!pending) return;
    }
  });
  socket.on('error', () => socket.destroy());
});

/** Offset after the body of the request whose head ends at `start`. -1 while the body is incomplete. */
function bodyEnd(text: string, start: number): number {
  const head = text.slice(0, start);
  const length = /content-length: *(\d+)/i.exec(head);
  if (length) return start + Number(length[1]) <= text.length ? start + Number(length[1]) : -1;
  if (!/transfer-encoding: *chunked/i.test(head)) return start;
  const last = text.indexOf('0\r\n\r\n', start);
  return last < 0 ? -1 : last + 5;
}

server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
  const address = server.address();
  process.stdout.write(`${JSON.stringify({ port: address && typeof address === 'object' ? address.port : 0 })}\n`);
});
// Ends with its parent, however the parent ends.
process.stdin.resume().once('end', () => process.exit(0));
