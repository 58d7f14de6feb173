import type { ClientAnswer } from '#http';
import { lengthOf } from '#wire';

/**
 * Keeps the answers to clients of legacy sessions for a while. A client whose connection broke comes back with the id
 * of the last event that it got.
 */
export interface Replays {
  /** Makes an answer that writes to `answer` and can be resumed. */
  record(session: string, answer: ClientAnswer): Recording;
  /**
   * Writes the events after the given one, and all that are still to come, to another answer. Resolves to true when
   * that answer has ended, and to false if the event is not known here.
   */
  resume(session: string, lastEventId: string, answer: ClientAnswer): Promise<boolean>;
  readonly bytes: number;
  /** Forgets answers that ended long ago. Call it regularly. */
  sweep(): void;
}

export interface Recording extends ClientAnswer {
  /** An event with an id was written. Its client may come back, so leaving is not cancelling. */
  isResumable(): boolean;
}

interface ReplaysOptions {
  readonly now: () => number;
  /** Most bytes of one answer. A longer one cannot be resumed. */
  readonly answerBytesMax?: number;
  /** Most bytes of all answers. The oldest are forgotten first. */
  readonly bytesMax?: number;
  readonly keptMs?: number;
}

interface ReplayPiece {
  /** Id of the last event in it; null if no event in it has an id. */
  readonly id: string | null;
  readonly write: (answer: ClientAnswer) => Promise<void> | void;
}

interface Held {
  readonly session: string;
  readonly pieces: ReplayPiece[];
  bytes: number;
  endedAt: number | null;
  follower: Follower | null;
}

/** Another answer, for a client that came back. */
interface Follower {
  readonly answer: ClientAnswer;
  /** Resolves when everything that was given to it is written, in order. */
  written: Promise<void>;
  readonly over: () => void;
}

const MIB = 1024 * 1024;
/** A piece takes so much memory besides its text. */
const PIECE_BYTES = 400;
/** Lines end only at CR and LF, because other line separators may be part of the data. */
const ID_LINE = /(?:^|[\r\n])id: ?([^\r\n]*)/g;
/** Sent at once. A resumed answer is always a stream, even if the first one was not. */
const RESUMED = Buffer.from(': resumed\n\n');

export function createReplays({
  now,
  answerBytesMax = 4 * MIB,
  bytesMax = 64 * MIB,
  keptMs = 60_000,
}: ReplaysOptions): Replays {
  /** In the order in which their first event ids were written. */
  const all = new Set<Held>();

  const forget = (held: Held) => {
    if (!all.delete(held)) return;
    replays.bytes -= held.bytes;
    held.pieces.length = 0;
  };

  function hold(held: Held, piece: ReplayPiece, textLength: number): void {
    const length = textLength + PIECE_BYTES;
    if (!all.has(held)) {
      // A client cannot ask for anything before the first id.
      if (piece.id === null || held.bytes > 0) return;
      all.add(held);
    }
    held.pieces.push(piece);
    held.bytes += length;
    replays.bytes += length;
    if (held.bytes > answerBytesMax) forget(held);
    for (const oldest of all) {
      if (replays.bytes <= bytesMax) break;
      forget(oldest);
    }
  }

  function follow(follower: Follower, piece: ReplayPiece): Promise<void> {
    return (follower.written = follower.written.then(() => piece.write(follower.answer)));
  }

  const replays: Replays & { bytes: number } = {
    bytes: 0,
    record(session, answer) {
      const held: Held = { session, pieces: [], bytes: 0, endedAt: null, follower: null };
      const finish = (piece: ReplayPiece, length: number) => {
        hold(held, piece, length);
        held.endedAt = now();
        void piece.write(answer);
        if (held.follower) void follow(held.follower, piece).then(held.follower.over);
        held.follower = null;
      };
      return {
        isResumable: () => all.has(held),
        async events(chunk) {
          const piece = eventsPiece(chunk);
          hold(held, piece, chunk.byteLength);
          const followed = held.follower && follow(held.follower, piece);
          await piece.write(answer);
          await followed;
        },
        end(text, status, headers, eventId) {
          const length = typeof text === 'string' ? text.length : lengthOf(text.large.piecesOf(text.text));
          finish(endPiece(text, status, headers, eventId), length);
        },
        // Not recorded, because it has no event that a client could come back with.
        body: (asEvent) => answer.body(asEvent),
        close() {
          finish(CLOSE, 0);
        },
      };
    },

    async resume(session, lastEventId, answer) {
      for (const held of all) {
        if (held.session !== session) continue;
        const place = held.pieces.findLastIndex(({ id }) => id === lastEventId);
        if (place === -1) continue;
        // If a client comes back again, it has left its last stream.
        held.follower?.answer.close();
        held.follower?.over();
        const ended = held.endedAt !== null;
        const { promise: over, resolve } = Promise.withResolvers<void>();
        const follower: Follower = { answer, written: answer.events(RESUMED), over: resolve };
        for (const piece of held.pieces.slice(place + 1)) void follow(follower, piece);
        if (ended) void follower.written.then(resolve);
        else held.follower = follower;
        await over;
        return true;
      }
      return false;
    },

    sweep() {
      for (const held of all) if (held.endedAt !== null && held.endedAt <= now() - keptMs) forget(held);
    },
  };
  return replays;
}

// They stand outside of `record`, because a function in it would keep the answer, and with it the whole request.
const eventsPiece = (chunk: Parameters<ClientAnswer['events']>[0]): ReplayPiece => ({
  id: lastIdOf(chunk),
  write: (to) => to.events(chunk),
});
const endPiece = (...[text, status, headers, eventId]: Parameters<ClientAnswer['end']>): ReplayPiece => ({
  id: eventId ?? null,
  write: (to) => to.end(text, status, headers, eventId),
});
const CLOSE: ReplayPiece = { id: null, write: (to) => to.close() };

function lastIdOf(chunk: Uint8Array): string | null {
  const text = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString();
  if (!text.includes('id:')) return null;
  let last: string | null = null;
  for (const [, id] of text.matchAll(ID_LINE)) last = id!;
  return last;
}
