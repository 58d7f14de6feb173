import type { OpenDatabase } from './open.ts';

/** The time by the database's clock, which all gateways of the database share. */
export interface SharedClock {
  /**
   * Epoch milliseconds, whole. Before `follow` it is this machine's clock. It goes forward, unless the database's clock
   * is set back by more than an hour.
   */
  readonly now: () => number;
  /** Milliseconds by which this machine's clock is ahead of the database's. 0 before `follow`. */
  readonly aheadMs: () => number;
  /**
   * Follows the clock that `read` asks, from now on. Resolves after its first look, or rejects. A later look
   * that fails is left out.
   */
  follow(read: () => Promise<number>): Promise<void>;
  /** Looks now. Rejects with the error of `read`. */
  sync(): Promise<void>;
  close(): void;
}

interface SharedClockOptions {
  /** This machine's clock, in epoch milliseconds. */
  readonly wall?: () => number;
  /** Milliseconds of a monotonic clock. */
  readonly elapsed?: () => number;
  readonly everyMs?: number;
  readonly onLook?: (aheadMs: number) => void;
}

const EVERY_MS = 5_000;
/** If this machine's two clocks part by more than this, one of them stood still or was set. */
const STEP_MS = 1_000;
/** A clock that was set back by more was wrong before, and times that people see must become right. */
const BACK_MS = 3_600_000;

/**
 * Between two looks, time goes on by the monotonic clock of this machine. So it does not matter what this machine's own
 * clock says, nor when it is set. A look costs a query each five seconds and none for a call.
 *
 * A clock that goes ahead is followed at once: a machine that was suspended must catch up. One that goes back is waited
 * for at half the speed, so that nothing gets a time before that of its cause.
 */
export function createSharedClock({
  wall = Date.now,
  elapsed = () => performance.now(),
  everyMs = EVERY_MS,
  onLook = () => {},
}: SharedClockOptions = {}): SharedClock {
  let source: (() => Promise<number>) | null = null;
  /** The database's clock minus the monotonic one. null: nothing is known of the database's. */
  let origin: number | null = null;
  /** This machine's clock minus the monotonic one, at the last look. */
  let own = 0;
  /** Until the right time has come here, this one goes on at half the speed from `time` at `at`. */
  let slow: { readonly time: number; readonly at: number } | null = null;
  let looking: Promise<void> | null = null;
  let timer: NodeJS.Timeout | undefined;

  const at = (moment: number): number => {
    const right = moment + origin!;
    if (slow === null) return right;
    const slowTime = slow.time + (moment - slow.at) / 2;
    if (slowTime > right) return slowTime;
    slow = null;
    return right;
  };

  const correct = (offset: number, moment: number) => {
    const previous = origin === null ? null : at(moment);
    const back = origin === null ? 0 : origin - offset;
    origin = offset;
    if (back > 0) slow = back > BACK_MS ? null : { time: previous!, at: moment };
  };

  const take = async () => {
    const sentAt = elapsed();
    const time = await source!();
    const answered = elapsed();
    own = wall() - answered;
    // The database read its clock between the two moments, so what is known is right if it is between these.
    const [least, most] = [time - answered, time - sentAt];
    if (origin === null) correct((least + most) / 2, answered);
    else if (origin < least) correct(least, answered);
    else if (origin > most) correct(most, answered);
    onLook(clock.aheadMs());
  };

  const sync = (): Promise<void> =>
    (looking ??= take().finally(() => {
      looking = null;
    }));

  const clock: SharedClock = {
    now() {
      if (origin === null) return wall();
      const moment = elapsed();
      if (looking === null && Math.abs(wall() - moment - own) > STEP_MS) {
        own = wall() - moment;
        sync().catch(() => {});
      }
      return Math.floor(at(moment));
    },
    aheadMs: () => (origin === null ? 0 : wall() - elapsed() - origin),
    sync,
    async follow(read) {
      source = read;
      await sync();
      timer = setInterval(() => void sync().catch(() => {}), everyMs).unref();
    },
    close: () => clearInterval(timer),
  };
  return clock;
}

/** Lets a clock follow that of a database. The embedded database has no other clock than this machine. */
export async function followDatabase(clock: SharedClock, database: OpenDatabase): Promise<void> {
  if (database.engine === 'postgres') await clock.follow(() => database.clock());
}
