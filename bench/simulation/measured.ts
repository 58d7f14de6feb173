import type { Cpu, Setting } from './setting.ts';
import type { Forecast } from './simulate.ts';

/*
 * What the simulation is told, and what it must forecast. Measured on 2026-11-26, with PostgreSQL 18.4 and all gateways
 * on two virtual cores that did nothing else. Medians of three rounds.
 */

/**
 * Lines of bench/gateways.ts: operations in a group, and the CPU of the gateway and the database in microseconds a
 * call. `node bench/gateways.ts --kept --gateways 1 --concurrent 1,4,16,64,128 --ms 1500 --rounds 3`
 */
const ONE_GATEWAY: readonly (readonly [operations: number, gateway: number, database: number])[] = [
  [1, 640.5, 835],
  [4, 179.8, 257.3],
  [16, 54.7, 95.3],
  [64, 25.1, 54.8],
  [128, 17.6, 51.3],
];

/** Least squares of the relative errors: milliseconds of a group, and of each operation more. */
function costOf(column: 1 | 2): { readonly group: number; readonly operation: number } {
  let [w, x, y, xx, xy] = [0, 0, 0, 0, 0];
  for (const line of ONE_GATEWAY) {
    const ms = (line[column] * line[0]) / 2 / 1_000;
    const weight = 1 / ms ** 2;
    w += weight;
    x += weight * line[0];
    y += weight * ms;
    xx += weight * line[0] ** 2;
    xy += weight * line[0] * ms;
  }
  const operation = (w * xy - x * y) / (w * xx - x * x);
  return { group: (y - operation * x) / w, operation };
}

/** As if a settlement of one gateway with the far database took as long as measured. */
const BEHIND = 0.2;
/**
 * What reading takes more: a gateway with 60,000 consumers (most of them not known) beside one with 200, `--kept
 * --gateways 1 --rate 50 --far 1 --flush 2`.
 */
const READ = { gateway: 0.18, database: 0.15 };

/** Processes that go from one group to the next without a pause. */
const BUSY: Cpu = {
  gateway: { ...costOf(1), read: READ.gateway, behind: BEHIND },
  database: { ...costOf(2), read: READ.database, behind: BEHIND },
  // With 64 and 128 at once, groups of locks took 2.1 and 3.6 ms, and groups of settlements 2.7 and 4.8 ms.
  lockPart: 0.84,
  proxyMs: 0,
};

/**
 * Processes that wait for some milliseconds between two groups. Their caches are cold then: a group took 0.66 and 0.77
 * ms of CPU (`--kept --gateways 1 --rate 50 --far 1 --flush 2`), where the line above says 0.33 and 0.43.
 */
export const PAUSING: Cpu = {
  ...BUSY,
  gateway: { ...BUSY.gateway, group: 0.65 },
  database: { ...BUSY.database, group: 0.75 },
};

/** `node bench/simulation/parameters.ts`, with 1 ms in each direction and a flush of 2 ms. */
const FAR = { tripMs: 2.31, proxyMs: 0.034, flush: { delayMs: 2.16, syncMs: 0.185, isShared: true } };

/** Bytes of WAL by the groups of ONE_GATEWAY: 1,815 a call with 128 operations a group, and 2,872 with one. */
export const WAL_BYTES = { group: 533, call: 1_807 };
/** Of tables and indexes a call: 608 to 946 packed densely, 1,004 to 1,229 as they are after a run without vacuum. */
export const DISK_BYTES = 1_200;

const HERE = {
  money: 1e9,
  callMs: 0,
  cores: { count: 2, shared: true },
  varies: 0.5,
  locksWaitForDisk: true,
};

const far = (gateways: number): Setting => ({
  ...HERE,
  gateways,
  consumers: 20_000,
  load: { rate: 50 },
  tripMs: FAR.tripMs,
  flush: FAR.flush,
  cpu: { ...PAUSING, proxyMs: FAR.proxyMs },
  beside: 1,
  fundedEveryMs: 2_500,
  warmMs: 500,
  ms: 18_000,
});

/**
 * `beside`: with two gateways and 128 calls at once, a call took 98.5 µs of CPU, and with one gateway and groups of the
 * same size 79.9 (`--kept --gateways 2 --concurrent 128`).
 */
const full = (gateways: number, callers: number): Setting => ({
  ...HERE,
  gateways,
  consumers: 200,
  load: { callers: callers / gateways },
  tripMs: 0,
  flush: { ...FAR.flush, delayMs: 0 },
  cpu: BUSY,
  beside: gateways === 1 ? 1 : 1.23,
  warmMs: 4_000,
  ms: 8_000,
});

type Figure = keyof Forecast;

interface Check {
  readonly title: string;
  readonly command: string;
  readonly rows: readonly { readonly setting: Setting; readonly load: string; readonly measured: Measured }[];
}
type FarRow = readonly [
  gateways: number,
  lockP50: number,
  lockP99: number,
  settleP50: number,
  settleP99: number,
  operationsAGroup: number,
];
const farRows = (locksWaitForDisk: boolean, rows: readonly FarRow[]): Check['rows'] =>
  rows.map(([gateways, lockP50, lockP99, settleP50, settleP99, operationsAGroup]) => ({
    setting: { ...far(gateways), locksWaitForDisk },
    load: '50/s each',
    measured: { lockP50, lockP99, settleP50, settleP99, operationsAGroup },
  }));
export type Measured = Partial<Readonly<Record<Figure, number>>>;

export const CHECKS: readonly Check[] = [
  {
    title: 'A database that is far away',
    command:
      'node bench/gateways.ts --gateways 1,4,8,16 --rate 50 --far 1 --flush 2 --consumers 20000 --ms 6000 --rounds 3',
    rows: farRows(false, [
      [1, 3.9, 11.6, 5.6, 11.6, 1.1],
      [4, 7.9, 19.8, 6.2, 13.5, 1.3],
      [8, 9.2, 23.8, 6.7, 15.7, 1.3],
      [16, 14.7, 55.6, 9.4, 31.7, 1.5],
    ]),
  },
  {
    title: 'The same, of 2,000 consumers beside one that lacks money',
    command:
      'node bench/gateways.ts --gateways 4,8 --rate 50 --far 1 --flush 2 --consumers 2000 --broke 20 --ms 6000 --rounds 3',
    rows: (
      [
        [4, 8.7, 6.7],
        [8, 9.8, 7.3],
      ] as const
    ).map(([gateways, lockP50, settleP50]) => ({
      setting: { ...far(gateways), consumers: 2_000, broke: 20, fundedEveryMs: 300, locksWaitForDisk: false },
      load: '50/s each',
      measured: { lockP50, settleP50 },
    })),
  },
  {
    title: 'A database that is far away, and locks that are kept',
    command:
      'node bench/gateways.ts --kept --gateways 1,4,8,16 --rate 50 --far 1 --flush 2 --consumers 20000 --ms 6000 --rounds 3',
    rows: farRows(true, [
      [1, 6.7, 13.3, 5.8, 8.2, 1.2],
      [4, 10.7, 21.5, 6.8, 13.2, 1.4],
      [8, 10.8, 22.8, 6.7, 14.1, 1.4],
      [16, 16.1, 33.4, 9.7, 21.4, 1.6],
    ]),
  },
  {
    title: 'As many calls as possible, with locks that are kept',
    command: 'node bench/gateways.ts --kept --gateways 1,4 --concurrent 32,256 --ms 2500 --rounds 3',
    rows: (
      [
        [1, 32, 8_918, 1.4, 1.8],
        [1, 256, 15_896, 6.2, 9],
        [4, 32, 6_662, 2.1, 2.3],
        [4, 256, 18_410, 6.4, 6.4],
      ] as const
    ).map(([gateways, callers, calls, lockP50, settleP50]) => ({
      setting: full(gateways, callers),
      load: `${callers} at once`,
      measured: { calls, lockP50, settleP50 },
    })),
  },
];
