/** What many gateways do on one PostgreSQL, by a simulation of their protocol. See `--help`. */
import { parseArgs } from 'node:util';
import { CHECKS, DISK_BYTES, PAUSING, WAL_BYTES, type Measured } from './measured.ts';
import type { Setting } from './setting.ts';
import { simulate } from './simulate.ts';

const HELP = `node bench/simulation/main.ts [--check] [--gateways 10,100] [--calls 10000] [--trip 0.5] [--flush 1] [--consumers 100000]
                             [--affinity 0] [--busiest 0] [--money 1e9] [--call 2000] [--commit MS] [--cores 256] [--seconds 2]
  --check      what was measured on this machine (measured.ts) beside the forecast of the same setting
  --gateways   processes, each on a core of its own
  --calls      calls a second over all of them, at random times
  --cores      of PostgreSQL
  --trip       milliseconds to PostgreSQL and back
  --flush      milliseconds of a flush of its disk, which serves all that wait
  --commit     instead: milliseconds of each commit by itself, as of an engine that replicates each
  --consumers  accounts, with the same number of calls each
  --affinity   part of the calls that a load balancer sends to a gateway of the account's own
  --busiest    part of the calls that one of the accounts makes
  --money      calls at once for which each account has money
  --call       milliseconds from the lock of a call to its settlement
`;

const { values: flags } = parseArgs({
  options: {
    check: { type: 'boolean' },
    gateways: { type: 'string', default: '10,30,100' },
    calls: { type: 'string', default: '1000,10000,30000,100000' },
    trip: { type: 'string', default: '0.5' },
    flush: { type: 'string', default: '1' },
    commit: { type: 'string' },
    consumers: { type: 'string', default: '100000' },
    affinity: { type: 'string', default: '0' },
    busiest: { type: 'string', default: '0' },
    money: { type: 'string', default: '1e9' },
    call: { type: 'string', default: '2000' },
    cores: { type: 'string', default: '256' },
    seconds: { type: 'string', default: '2' },
    help: { type: 'boolean' },
  },
});
/** Sizes of machines. PostgreSQL gets the smallest of which it uses at most this part. */
const CORES = [2, 4, 8, 16, 32, 64, 128, 256];
const USED = 0.6;

if (flags.help) process.stdout.write(HELP);
else if (flags.check) check();
else forecast();

function table(rows: readonly (readonly (string | number)[])[]): void {
  const line = (cells: readonly (string | number)[]) => `| ${cells.join(' | ')} |`;
  const [head, ...rest] = rows;
  console.log([line(head!), line(head!.map(() => '---:')), ...rest.map(line)].join('\n'));
}

function check(): void {
  for (const { title, command, rows } of CHECKS) {
    console.log(`\n${title}: ${command}\n`);
    const lines = rows.flatMap(({ setting, load, measured }) => {
      const found = simulate(setting);
      return (Object.entries(measured) as [keyof Measured, number][]).map(([figure, value]) => [
        setting.gateways,
        load,
        figure,
        value,
        found[figure].toFixed(value > 100 ? 0 : 1),
        `${((found[figure] / value - 1) * 100).toFixed(0)} %`,
      ]);
    });
    table([['gateways', 'load', 'figure', 'measured', 'forecast', 'deviation'], ...lines]);
  }
}

function forecast(): void {
  const numbers = (text: string) => text.split(',').map(Number);
  const isUneven = Number(flags.busiest) > 0;
  const rows = numbers(flags.calls).flatMap((calls) =>
    numbers(flags.gateways).map((gateways) => {
      const setting: Setting = {
        gateways,
        consumers: Number(flags.consumers),
        busiest: Number(flags.busiest),
        affinity: Number(flags.affinity),
        money: Number(flags.money),
        load: { rate: calls / gateways },
        callMs: Number(flags.call),
        tripMs: Number(flags.trip),
        flush: { delayMs: 0, syncMs: Number(flags.commit ?? flags.flush), isShared: flags.commit === undefined },
        cpu: PAUSING,
        cores: { count: Number(flags.cores), shared: false },
        beside: 1,
        varies: 0.5,
        locksWaitForDisk: false,
        warmMs: Number(flags.call) + Number(flags.seconds) * 1_000,
        ms: Number(flags.seconds) * 1_000,
      };
      const { busyCores, groups, read, wrong, refused, ...found } = simulate(setting);
      const walBytes = found.calls * WAL_BYTES.call + groups * WAL_BYTES.group;
      const cores = CORES.find((count) => busyCores <= count * USED) ?? `more than ${CORES.at(-1)}`;
      const isBehind = found.calls < calls * 0.95;
      return [
        gateways,
        `${calls.toLocaleString('en')}${isBehind ? ' (not reached)' : ''}`,
        found.operationsAGroup.toFixed(1),
        ...[found.lockP50, found.lockP99, found.settleP50, found.settleP99].map((ms) => ms.toFixed(1)),
        ...(isUneven ? [found.theirLockP50.toFixed(1), found.theirLockP99.toFixed(1)] : []),
        busyCores.toFixed(1),
        cores,
        `${Math.round(read * 100)} %`,
        `${(wrong * 100).toFixed(1)} %`,
        (walBytes / 1e6).toFixed(1),
        Math.round((calls * 86_400 * DISK_BYTES) / 1e9).toLocaleString('en'),
        refused,
      ];
    }),
  );
  const ofBusiest = isUneven ? ['lock of the busiest, p50 ms', 'p99 ms'] : [];
  const latencies = ['lock p50 ms', 'p99 ms', 'settle p50 ms', 'p99 ms', ...ofBusiest];
  const database = [
    'busy cores',
    'so a machine of',
    'groups that read',
    'wrong',
    'WAL MB/s',
    'disk GB a day',
    'refused',
  ];
  table([['gateways', 'calls/s', 'operations a group', ...latencies, ...database], ...rows]);
}
