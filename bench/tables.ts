/**
 * The cost per call of the threads behind the embedded ledger's log. One updates the tables from the log, the other
 * adds calls up. The benchmark replays one recorded log in one thread, alternating with another checkout's code. See
 * `--help`.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import type * as RollUp from '../src/billing/analytics/roll-up-program.ts';
import type * as Following from '../src/billing/ledger/ledger-follower.ts';
import type * as Follow from '../src/foundation/store/log/follow.ts';
import type * as Progress from '../src/foundation/store/log/shared-progress.ts';
import { readRecords } from '../src/foundation/store/log/reader.ts';
import { MIGRATED_BY_TABLE, MIGRATIONS_TABLE } from '../src/foundation/store/migrations.ts';
import type { Prepare } from '../src/foundation/store/statement.ts';
import { openLoaded, percentile } from './ledger-load.ts';

const HELP = `node bench/tables.ts [--before FOLDER] [--pairs 20000] [--rounds 7] [--step 700000] [--log FOLDER]
  --before  another checkout of tollgate
  --step    bytes of log that the tables follow in one transaction
  --log     the folder ledger of a data directory, of one file, instead of a log that is made for the run
CPU is of the thread that does it. Figures are the least of the rounds: other work of the machine only adds to them.
`;
/** The tables are updated every 0.25 s, and calls are added up every 2 s. */
const STEPS_OF_A_ROLL_UP = 8;
const LOG = '0000000000000000.log';

const { values: flags } = parseArgs({
  options: {
    before: { type: 'string' },
    pairs: { type: 'string', default: '20000' },
    rounds: { type: 'string', default: '7' },
    step: { type: 'string', default: '700000' },
    log: { type: 'string' },
    help: { type: 'boolean' },
  },
});
if (flags.help) {
  process.stdout.write(HELP);
  process.exit();
}

/** The modules of a checkout that are measured. */
interface Tree {
  readonly name: string;
  readonly root: URL;
  readonly followLog: typeof Follow.followLog;
  readonly shareProgress: typeof Progress.shareProgress;
  readonly follower: typeof Following;
  readonly rollUp: typeof RollUp;
}

const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-tables-'));
try {
  const log = flags.log === undefined ? await recordedLog() : resolve(flags.log);
  const bytes = readFileSync(join(log, LOG));
  const calls = bytes.toString('latin1').match(/\["(?:settle|release|expire)",/g)?.length ?? 0;
  const trees = [
    ...(flags.before === undefined ? [] : [await treeAt('before', pathToFileURL(`${resolve(flags.before)}/`))]),
    await treeAt('now', new URL('../', import.meta.url)),
  ];
  const costs = trees.map((): { follow: number[]; rollUp: number[]; bytes: number }[] => []);
  for (let round = 0; round < Number(flags.rounds); round += 1)
    for (const [index, tree] of trees.entries()) costs[index]!.push(measure(tree, log, bytes.byteLength));
  console.log(
    '| tree | tables, µs a call: user | system | sums, µs a call: user | system | bytes of log a call | of tables |',
  );
  console.log('| --- | ---: | ---: | ---: | ---: | ---: | ---: |');
  for (const [index, { name }] of trees.entries()) {
    const rounds = costs[index]!;
    const least = (value: (cost: (typeof rounds)[number]) => number) => percentile(rounds.map(value), 0) / calls;
    const cells = [
      least(({ follow }) => follow[0]!),
      least(({ follow }) => follow[1]!),
      least(({ rollUp }) => rollUp[0]!),
      least(({ rollUp }) => rollUp[1]!),
    ].map((value) => value.toFixed(1));
    const sizes = [bytes.byteLength / calls, least((cost) => cost.bytes)].map((value) => value.toFixed(0));
    console.log(`| ${[name, ...cells, ...sizes].join(' | ')} |`);
  }
} finally {
  rmSync(folder, { recursive: true });
}

/** Records a log with this checkout's ledger, with calls like a gateway's. Returns its folder. */
async function recordedLog(): Promise<string> {
  const dataDir = join(folder, 'recorded');
  const ledger = await openLoaded({ dataDir }, 'recorded');
  let pairs = 0;
  while (pairs < Number(flags.pairs)) {
    const made = await ledger.drive(32, 500);
    pairs += made.pairs;
  }
  await ledger.close();
  return join(dataDir, 'ledger');
}

async function treeAt(name: string, root: URL): Promise<Tree> {
  const load = (path: string) => import(new URL(`src/${path}.ts`, root).href) as Promise<unknown>;
  const { followLog } = (await load('foundation/store/log/follow')) as typeof Follow;
  const { shareProgress } = (await load('foundation/store/log/shared-progress')) as typeof Progress;
  const follower = (await load('billing/ledger-follower')) as typeof Following;
  const rollUp = (await load('billing/analytics/roll-up-program')) as typeof RollUp;
  return { name, root, followLog, shareProgress, follower, rollUp };
}

/** CPU microseconds of this thread, in user mode and in the kernel. */
function spent(run: () => void): number[] {
  const before = process.threadCpuUsage();
  run();
  const { user, system } = process.threadCpuUsage(before);
  return [user, system];
}

function measure(tree: Tree, log: string, length: number) {
  const dataDir = mkdtempSync(join(folder, 'data-'));
  const own = join(dataDir, 'ledger');
  mkdirSync(own);
  const database = new DatabaseSync(join(dataDir, 'tollgate.db'), { timeout: 5_000, readBigInts: true });
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000');
  database.exec(`${MIGRATIONS_TABLE};${MIGRATED_BY_TABLE}`);
  const migrations = new URL('src/foundation/store/migrations/', tree.root);
  for (const name of readdirSync(migrations).toSorted()) database.exec(readFileSync(new URL(name, migrations), 'utf8'));
  database.exec('PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY');
  const prepare = preparer(database);
  const progress = tree.shareProgress();
  const transaction = (run: () => void) => {
    database.exec('BEGIN IMMEDIATE');
    run();
    database.exec('COMMIT');
  };
  const { catchUp } = tree.followLog({ folder: own, follower: tree.follower, prepare, transaction, progress });
  cpSync(join(log, LOG), join(own, LOG));
  const ends: number[] = [];
  for (const { position } of readRecords(own, { position: 0, n: 0, hash: '' }, length, true))
    if (position - (ends.at(-1) ?? 0) >= Number(flags.step) || position === length) ends.push(position);
  const follow = [0, 0];
  const rollUp = [0, 0];
  let from: RollUp.RequestedPart['from'] = null;
  for (const [index, end] of ends.entries()) {
    progress.end = end;
    add(follow, spent(catchUp));
    if (index % STEPS_OF_A_ROLL_UP !== 0 && end !== length) continue;
    add(
      rollUp,
      spent(() => (from = rollUpFrom(tree, dataDir, from))),
    );
  }
  database.close();
  const { size } = statSync(join(dataDir, 'tollgate.db'));
  rmSync(dataDir, { recursive: true });
  return { follow, rollUp, bytes: size };
}

function add(sums: number[], values: readonly number[]): void {
  for (const [index, value] of values.entries()) sums[index]! += value;
}

/** Opens a new connection like the gateway's snapshot, so that nothing is cached. */
function rollUpFrom(tree: Tree, dataDir: string, from: RollUp.RequestedPart['from']): RollUp.RequestedPart['from'] {
  const reader = new DatabaseSync(join(dataDir, 'tollgate.db'), { readOnly: true, readBigInts: true });
  reader.exec('BEGIN; PRAGMA cache_size = -65536; PRAGMA temp_store = FILE');
  const { places, hasMore } = tree.rollUp.run(preparer(reader), { from, most: 1e6 }, join(dataDir, 'ledger'));
  reader.close();
  if (hasMore) throw new Error('a part was not added up');
  return places[0] ?? from;
}

function preparer(database: DatabaseSync): Prepare {
  const prepared = new Map<string, StatementSync>();
  return ({ name, text }) => {
    let found = prepared.get(name);
    if (!found) prepared.set(name, (found = database.prepare(text.replaceAll(/\$(?=\d)/g, '?'))));
    return found;
  };
}
