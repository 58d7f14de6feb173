import { constrainedMemory } from 'node:process';
import { totalmem } from 'node:os';
import type { FastifyRequest } from 'fastify';
import { GatewayError } from '#errors';
import type { LimitsConfig } from '#config';
import { networkLevels } from '#security';
import { createHeldMemory, type MemoryHold } from './held-memory.ts';

/**
 * Parsed JSON takes several times the memory of its bytes: the bytes, the text, the values, and the bytes that are sent
 * on. Measured with chat requests of 10 MiB: 4.0 times with messages of 1 KiB or one long text in Latin letters, 3.0
 * with one in Chinese, 4.7 with 180,000 messages of 22 letters. A body of many small values takes more, and
 * `limits.json_keys_max` bounds how many it may have.
 */
export const PARSED_JSON = 4;

type BodyLimits = Pick<LimitsConfig, 'bodiesBytesMax' | 'bodyBytesMax' | 'chatBodyBytesMax' | 'mediaBodyBytesMax'>;

/** The count that has no room: that of the account, of the network, or of all. */
export type FullShare = BodyParty | 'gateway';
type BodyParty = 'account' | 'network';
export type BodyHold = MemoryHold<BodyParty>;

/** Why a body was refused: no room, or the upload was too slow. */
export type BodyRefusal = FullShare | 'slow';

/** Counts the memory for the bodies of requests. */
export interface BodyMemory {
  /** Begins to count one body, or the files of one request. `account`, `network`: null if it is not known. */
  open(account: string | null, network: string | null): BodyHold;
  /** Asks for `bytes` in total. Throws GatewayError `rate_limit_exceeded`, `service_unavailable` without room. */
  take(hold: BodyHold, bytes: number): void;
  /** Asks for `bytes` in total like `take`. Returns the count that has no room, or null if the bytes are counted. */
  lacks(hold: BodyHold, bytes: number): FullShare | null;
  refusal(full: FullShare): GatewayError;
  used(): number;
}

const MIB = 1024 * 1024;
const RETRY_AFTER_S = 2;

/** `onRefused`: called for each refusal. `onFreed`: called when memory became free. */
export function createBodyMemory(
  limits: BodyLimits,
  onRefused: (why: BodyRefusal) => void,
  onFreed: () => void,
): BodyMemory {
  const { bodyBytesMax, chatBodyBytesMax, mediaBodyBytesMax } = limits;
  const memory = createHeldMemory({
    bytesMax: limits.bodiesBytesMax ?? bodiesBytesOf(1),
    oneBytesMax: Math.max(mediaBodyBytesMax, PARSED_JSON * Math.max(bodyBytesMax, chatBodyBytesMax)),
    uncountedBytes: 0,
    kinds: { account: null, network: networkLevels },
    waitMs: 0,
    full: () => refusal('gateway'),
    onFreed,
  });
  const lacks: BodyMemory['lacks'] = (hold, bytes) => {
    const full = hold.lacks(bytes);
    return full === 'all' ? 'gateway' : full;
  };
  const refused = (full: FullShare) => {
    onRefused(full);
    return refusal(full);
  };
  return {
    used: memory.used,
    open: (account, network) => memory.open({ account, network }),
    lacks,
    refusal: refused,
    take(hold, bytes) {
      const full = lacks(hold, bytes);
      if (full !== null) throw refused(full);
    },
  };
}

/**
 * The default of `bodies_bytes_max` for each of several processes on this machine. A container's limit counts, if it is
 * below the memory of the machine.
 */
export function bodiesBytesOf(processes: number): number {
  const memory = Math.min(constrainedMemory() || Infinity, totalmem());
  return Math.floor(Math.min(1024 * MIB, Math.max(128 * MIB, memory / 4)) / processes);
}

function refusal(why: FullShare): GatewayError {
  if (why === 'gateway')
    return new GatewayError(
      'service_unavailable',
      'The memory of this gateway for the bodies of requests is full: retry in a moment. The operator sets it with limits.bodies_bytes_max',
      { retryAfterS: RETRY_AFTER_S },
    );
  return new GatewayError(
    'rate_limit_exceeded',
    `The large requests of this ${why} that arrive or run now leave no room for this one: retry when one of them has ended. ` +
      `One ${why} may use a quarter of limits.bodies_bytes_max, and at most as many bytes as it leaves free`,
    { retryAfterS: RETRY_AFTER_S },
  );
}

const HELD = Symbol('memory of the body');
type Holding = FastifyRequest & { [HELD]?: HeldBody };

/**
 * The memory of one body, and of what its request takes beside it. It is given back when its last user has ended: the
 * request, and calls that it began.
 */
export class HeldBody {
  hold: BodyHold | null = null;
  /** The bytes of `hold` that are counted for the body itself. */
  bytes = 0;
  #users = 0;

  /** Another user of the body. Call the returned function when that user has ended. */
  keep(): () => void {
    this.#users += 1;
    let over = false;
    return () => {
      if (over) return;
      over = true;
      this.#users -= 1;
      if (this.#users === 0) this.hold?.release();
    };
  }
}

/** The memory of a request, which begins with this if it has not begun. */
export const heldBy = (request: Holding): HeldBody => (request[HELD] ??= new HeldBody());

/** The memory of a request that `heldBy` has begun; undefined for a small body that it was not asked for. */
export const begunFor = (request: Holding): HeldBody | undefined => request[HELD];

/** The memory of a request; null if nothing of it is counted, as for a small body. */
export const heldBodyOf = (request: FastifyRequest): HeldBody | null => {
  const held = (request as Holding)[HELD];
  return held === undefined || held.hold === null ? null : held;
};
