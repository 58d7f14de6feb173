import { percentile } from '../ledger-load.ts';
import { Database } from './database.ts';
import { Clock, Cores, createRandom } from './engine.ts';
import { Gateway, type Call, type GroupCounts } from './gateway.ts';
import type { Setting } from './setting.ts';

/** What was measured in a simulation, in milliseconds and a second. */
export interface Forecast {
  readonly calls: number;
  readonly operationsAGroup: number;
  readonly groups: number;
  /** This and the next three: of all accounts but the busiest one and the one that lacks money. */
  readonly lockP50: number;
  readonly lockP99: number;
  readonly settleP50: number;
  readonly settleP99: number;
  /** This and the next one: of these two accounts. */
  readonly theirLockP50: number;
  readonly theirLockP99: number;
  /** Cores that are busy: those of the setting, which the gateways may share. */
  readonly busyCores: number;
  readonly flushes: number;
  /** Parts of all groups. */
  readonly read: number;
  readonly wrong: number;
  readonly rowWaitMs: number;
  readonly refused: number;
}

const BUSIEST = 0;

export function simulate(setting: Setting): Forecast {
  const clock = new Clock();
  const random = createRandom(setting.seed ?? 1);
  const cores = new Cores({ count: setting.cores.count, beside: setting.beside, varies: setting.varies, random });
  const database = new Database(setting, clock, cores);
  const gateways = Array.from({ length: setting.gateways }, (_, index) => {
    const own = setting.cores.shared ? cores : new Cores({ count: 1, beside: 1, varies: setting.varies, random });
    return new Gateway(index, own, database);
  });
  if (setting.fundedEveryMs !== undefined)
    for (const gateway of gateways) {
      for (let key = 0; key < setting.consumers; key += 1) database.row(key).version += 1;
      gateway.ledgers[0].learn((setting.gateways - gateway.index) * setting.fundedEveryMs);
    }
  const lockMs: number[] = [];
  const theirLockMs: number[] = [];
  const settleMs: number[] = [];
  const theirSettleMs: number[] = [];
  let refused = 0;

  const call = (gateway: Gateway, account: number, then: () => void) => {
    const begun = clock.now;
    const isTheirs = account === database.broke || (account === BUSIEST && (setting.busiest ?? 0) > 0);
    const made: Call = { account, heldIn: null };
    const settle = () => {
      const ended = clock.now;
      const done = () => {
        if (ended >= setting.warmMs) (isTheirs ? theirSettleMs : settleMs).push(clock.now - ended);
        then();
      };
      gateway.submit({ kind: 'settle', call: made, done });
    };
    const locked = (isGranted: boolean) => {
      if (begun >= setting.warmMs) (isTheirs ? theirLockMs : lockMs).push(clock.now - begun);
      if (isGranted && setting.callMs > 0) clock.after(setting.callMs, settle);
      else if (isGranted) settle();
      else {
        refused += 1;
        then();
      }
    };
    gateway.submit({ kind: 'lock', call: made, done: locked });
  };
  /** Begins calls at random times, so many a second. */
  const arriveAt = (rate: number, begin: () => void) => {
    const arrive = () => {
      begin();
      clock.after((-Math.log(1 - random()) * 1_000) / rate, arrive);
    };
    clock.after((random() * 1_000) / rate, arrive);
  };
  for (const gateway of gateways) {
    if (setting.broke) arriveAt(setting.broke, () => call(gateway, database.broke, () => {}));
    if ('rate' in setting.load)
      arriveAt(setting.load.rate, () => {
        const account = random() < (setting.busiest ?? 0) ? BUSIEST : Math.floor(random() * setting.consumers);
        const isAtOwn = random() < (setting.affinity ?? 0);
        call(isAtOwn ? gateways[account % gateways.length]! : gateway, account, () => {});
      });
    else
      for (let index = 0; index < setting.load.callers; index += 1) {
        let turn = index;
        const next = () => call(gateway, turn++ % setting.consumers, next);
        clock.after(random(), next);
      }
  }
  const sum = (): GroupCounts & { busyMs: number; flushes: number; rowWaitMs: number; settled: number } => {
    const total = { groups: 0, operations: 0, read: 0, wrong: 0 };
    for (const { counts } of gateways.flatMap(({ ledgers }) => ledgers))
      for (const key of Object.keys(total) as (keyof GroupCounts)[]) total[key] += counts[key];
    const { flushes, rowWaitMs } = database;
    return { ...total, busyMs: cores.busyMs, flushes, rowWaitMs, settled: settleMs.length + theirSettleMs.length };
  };
  clock.runUntil(setting.warmMs);
  const before = sum();
  clock.runUntil(setting.warmMs + setting.ms);
  const after = sum();
  const during = (key: keyof typeof before) => after[key] - before[key];
  const perSecond = (count: number) => (count / setting.ms) * 1_000;
  return {
    calls: perSecond(during('settled')),
    operationsAGroup: during('operations') / during('groups'),
    groups: perSecond(during('groups')),
    lockP50: percentile(lockMs, 0.5),
    lockP99: percentile(lockMs, 0.99),
    settleP50: percentile(settleMs, 0.5),
    settleP99: percentile(settleMs, 0.99),
    theirLockP50: percentile(theirLockMs, 0.5),
    theirLockP99: percentile(theirLockMs, 0.99),
    busyCores: during('busyMs') / setting.ms,
    flushes: perSecond(during('flushes')),
    read: during('read') / during('groups'),
    wrong: during('wrong') / during('groups'),
    rowWaitMs: during('rowWaitMs') / during('groups'),
    refused,
  };
}
