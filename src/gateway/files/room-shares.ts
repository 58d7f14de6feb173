import { GatewayError } from '#errors';

export interface RoomLimits {
  readonly bytesMax: number;
  readonly accountBytesMax: number;
  readonly fileBytesMax: number;
  /** Bytes to leave free on the disk. */
  readonly freeBytesMin: number;
  /** Bytes of all files of free services; null: a part of `bytesMax`. */
  readonly freeServicesBytesMax?: number | null;
}

/** Bytes that are stored or reserved at the moment. */
export interface UsedRoom {
  /** Of the account that asks. */
  readonly own: number;
  readonly total: number;
  /** The parts of `own` and `total` that are of free services. */
  readonly ownFree: number;
  readonly totalFree: number;
  /** Reserved bytes that are not on the disk yet. */
  readonly coming: number;
  readonly disk: number;
}

const RETRY_S = 60;
/** The part of all room that files of free services may use, if the operator does not say otherwise. */
const FREE_PART = 1 / 8;
/** A store with room for fewer of the largest files is not shared out, because no account could have one. */
const SHARED_FILES_MIN = 8;

/**
 * Refuses `bytes` more for an account. As everywhere in the gateway, an account may take more while at least as
 * much is free afterwards as it holds, so n accounts get about 1/(n + 1) each, and no number of accounts takes all.
 * Files of free services have a small part of their own. Throws GatewayError: `rate_limit_exceeded` if it is the
 * account's own share that is used up, `service_unavailable` if it is the room of all.
 */
export function refuseBeyondShare(limits: RoomLimits, used: UsedRoom, bytes: number, isFree: boolean): void {
  const { bytesMax, accountBytesMax, fileBytesMax, freeBytesMin } = limits;
  const own = used.own + bytes;
  if (own > accountBytesMax)
    throw ownRoom(
      `The files of this account use all of its space (${accountBytesMax} bytes, media.account_bytes_max). This request needs ${bytes} bytes, and ${used.own} are stored or reserved for running videos`,
    );
  if (isFree) refuseBeyondFreePart(limits, used, bytes);
  const remaining = Math.min(bytesMax - used.total, used.disk - used.coming - freeBytesMin) - bytes;
  if (remaining < 0) throw allRoom('This gateway has no room for another file at the moment');
  // The disk may be smaller than `bytesMax`.
  const room = used.total + remaining + bytes;
  if (room < SHARED_FILES_MIN * fileBytesMax || own <= remaining) return;
  if (used.own === 0) throw allRoom(`This gateway has too little room for ${bytes} more bytes at the moment`);
  throw ownRoom(
    `The files of this account use its share of the space of this gateway: an account holds at most as much as is left for others. This request needs ${bytes} bytes, ${used.own} are stored or reserved for running videos, and ${remaining + bytes} are free`,
  );
}

function refuseBeyondFreePart(limits: RoomLimits, { ownFree, totalFree }: UsedRoom, bytes: number): void {
  const { bytesMax, fileBytesMax, freeServicesBytesMax } = limits;
  const part = freeServicesBytesMax ?? Math.max(fileBytesMax, Math.floor(bytesMax * FREE_PART));
  const remaining = part - totalFree - bytes;
  if (ownFree > 0 && ownFree + bytes > remaining)
    throw ownRoom(
      `The files of this account use its share of the space for videos of free services. This request needs ${bytes} bytes, ${ownFree} are stored or reserved for running videos, and ${Math.max(0, remaining + bytes)} are free`,
    );
  if (remaining < 0) throw allRoom('This gateway has no room for another video of a free service at the moment');
}

const ownRoom = (message: string) =>
  new GatewayError('rate_limit_exceeded', `${message}: wait until a video ends, or until older files expire`, {
    retryAfterS: RETRY_S,
  });

const allRoom = (message: string) => new GatewayError('service_unavailable', message, { retryAfterS: RETRY_S });
